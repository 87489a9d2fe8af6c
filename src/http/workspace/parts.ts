import Type from 'typebox'
import { entityIdBytesMax, entityIdCharsMax, featureIdCharsMax, nameCharsMax } from '../../kernel/limits.ts'
import { closed, usageId } from '../schema.ts'

/** Schema parts that several resources of the Workspace API share. */

export const id = Type.String({ minLength: 1, maxLength: 64, 'x-storable': true })

/** Of what has a key: the id or the key. */
export const idOrKey = Type.String({ minLength: 1, maxLength: featureIdCharsMax, 'x-storable': true })

export const byId = closed({ id })
export const byIdOrKey = closed({ id: idOrKey })

export const name = Type.String({ minLength: 1, maxLength: nameCharsMax, 'x-not-blank': true, 'x-storable': true })

export const key = usageId('1 to 256 characters without outer white space, unique per project and environment.', {
  charsMax: featureIdCharsMax,
})

export const entityId = usageId('A seat, team or device of the customer.', {
  charsMax: entityIdCharsMax,
  bytesMax: entityIdBytesMax,
})

/** May be left out where the workspace has exactly one project. */
export const projectId = Type.Optional(id)

/** For objects named by a key, which several projects of a workspace may have. */
export const inProject = closed({ project_id: projectId })

export const environment = Type.Unsafe<'test' | 'live'>({ type: 'string', enum: ['test', 'live'] })

export const deleted = (object: string) =>
  Type.Object({ object: Type.Literal(object), id: Type.String(), deleted: Type.Literal(true) })
