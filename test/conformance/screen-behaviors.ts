import {
  also,
  anything,
  ascending,
  digest,
  exact,
  fields,
  hold,
  id,
  integer,
  into,
  is,
  list,
  type Of,
  record,
  tagged,
  textWhich,
  utf8,
} from './check.ts'

const scriptBytesMax = 4 * 1024 * 1024

const source = tagged('source', {
  literal: fields({ value: anything }),
  invocation_value: fields(),
  component_id: fields(),
  instance_id: fields(),
})
const ownEvent = also(utf8(256), (eventName, at) => hold(at, !eventName.startsWith('$'), 'does not begin with $'))
const item = tagged('type', {
  emit: fields({ eventName: ownEvent }, { payload: record(utf8(256), source) }),
  response_set: fields({ field: utf8(256), value: source }),
  response_unset: fields({ field: utf8(256) }),
})
const behavior = tagged('kind', { script: fields(), declarative: fields({ program: list(item, { min: 1, max: 64 }) }) })

const artifact = also(
  exact({
    key: textWhich((value) => value !== '', 'is a key'),
    sha256: digest,
    sizeBytes: integer(0, scriptBytesMax),
    contentType: is('application/octet-stream'),
  }),
  ({ key, sha256 }, at) =>
    hold(into(at, 'key'), key === `screen-behavior/sha256/${sha256}.bin`, 'is the address of the content'),
)
const script = exact({ protocol: is('screen-actions'), artifact, exportedActionIds: list(id()) })

const screenBehavior = also(
  exact(
    {
      screenId: id(),
      controls: ascending(list(exact({ actionId: id(), behavior })), (each) => each.actionId, 'action id'),
    },
    { script },
  ),
  ({ controls, script: sent }, at) => {
    const scripted = controls.filter((each) => each.behavior.kind === 'script').map((each) => each.actionId)
    hold(into(at, 'script'), (sent !== undefined) === scripted.length > 0, 'is there exactly when a control needs it')
    const exported = sent?.exportedActionIds ?? scripted
    hold(
      into(at, 'script'),
      JSON.stringify(exported) === JSON.stringify(scripted),
      'exports the controls that need it, in order',
    )
  },
)

export const screenBehaviors = ascending(list(screenBehavior), (each) => each.screenId, 'screen id')
export type ScreenBehaviors = Of<typeof screenBehaviors>

/** Content of a release that lies elsewhere, under an address made of its hash. */
export interface Artefact {
  key: string
  sha256: string
  sizeBytes: number
  contentType: string
}

export function scriptsOf(behaviors: ScreenBehaviors): Artefact[] {
  return behaviors.flatMap((each) => (each.script === undefined ? [] : [each.script.artifact]))
}
