/** What `doctor` found about one thing. */
export interface Finding {
  name: string
  state: 'ok' | 'warning' | 'problem'
  says: string
  /** What to do about it; there is one unless all is well. */
  mend?: string
}

export function ok(name: string, says: string): Finding {
  return { name, state: 'ok', says }
}

export function warning(name: string, says: string, mend: string): Finding {
  return { name, state: 'warning', says, mend }
}

export function problem(name: string, says: string, mend: string): Finding {
  return { name, state: 'problem', says, mend }
}
