import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Handler, Routes } from '../http/router.ts'

/** Plain files, read when asked for: edit and reload. */
export const page: Routes = {
  'GET /': file('index.html', 'text/html'),
  'GET /page.js': file('page.js', 'text/javascript'),
  'GET /page.css': file('page.css', 'text/css'),
}

function file(name: string, type: string): Handler {
  return async () => ({
    headers: { 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-store' },
    body: await readFile(join(import.meta.dirname, name)),
  })
}
