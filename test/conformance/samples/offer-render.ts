import type { Sample } from './publish.ts'

export const digest = (index: number) => index.toString(16).repeat(64).slice(0, 64)

/** Every kind of asset. */
export function offerRender(): Sample {
  const scene = {
    key: `renders/sha256/${digest(2)}.ser`,
    sha256: digest(2),
    sizeBytes: 5,
    contentType: 'application/vnd.service.scene',
  }
  const stored = (index: number, extension: string, contentType: string) => {
    const key = `assets/sha256/${digest(index)}.${extension}`
    return { key, sha256: digest(index), sizeBytes: 7, contentType, required: true }
  }
  const named = (index: number) => ({ authoredAssetId: index, assetUniqueName: `asset-${index}` })
  const screen = { artboardId: 'ab', artboardName: 'Main', width: 390, height: 844.5 }
  const side = { completeEventName: 'gone' }
  return {
    renderer: 'ser',
    ser: scene,
    screens: [
      { id: 's1', ...screen, exit: { completeEventName: 'out', durationMs: 300 } },
      { id: 's2', ...screen },
    ],
    transitions: [
      {
        id: 't',
        kind: 'choreographed',
        sourceScreenId: 's1',
        destinationScreenId: 's2',
        durationMs: 300,
        incomingOnTop: true,
        source: side,
        destination: side,
        reverse: { source: side, destination: side, durationMs: 200, incomingOnTop: false },
      },
    ],
    textInputs: [],
    assets: [
      { kind: 'image', ...stored(3, 'png', 'image/png'), ...named(1), width: 10, height: 20 },
      {
        kind: 'font',
        location: 'cdn',
        ...stored(4, 'ttf', 'font/ttf'),
        ...named(2),
        family: 'Inter',
        weight: '400',
        style: 'normal',
        format: 'ttf',
      },
      {
        kind: 'video',
        ...stored(5, 'mp4', 'video/mp4'),
        ...named(3),
        sourceAssetKey: 'asset:intro',
        width: 1280,
        height: 720,
        durationMs: 4000,
        videoCodec: 'avc1.64001f',
        audioCodec: 'mp4a.40.2',
        captionTracks: [{ streamIndex: 2, codec: 'mov_text', language: 'en', title: 'English' }],
      },
      { kind: 'script', ...stored(6, 'bin', 'application/octet-stream') },
      { kind: 'shader', ...stored(7, 'bin', 'application/octet-stream') },
      {
        kind: 'font',
        location: 'system',
        ...named(4),
        family: 'System',
        weight: '600',
        style: 'normal',
        required: true,
      },
    ],
    videoElements: [
      {
        artboardId: 'ab',
        viewNodeId: 'vn',
        renderedNodeId: 'rn',
        componentId: 4,
        readinessTimeoutSeconds: 5,
        optional: false,
      },
    ],
  }
}
