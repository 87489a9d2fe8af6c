/**
 * fast-check for all random tests, with one seed for the whole run: the same change fails or passes wherever it is tested.
 * `TEST_SEED=random npm test` tries other cases, `TEST_SEED=<number>` those of another run.
 */
import fc from 'fast-check'

const given = process.env.TEST_SEED ?? '20261120'
if (given !== 'random') fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(given) })

export * from 'fast-check'
export default fc
