/** A reason not to start, told in one line to whoever runs the service. Anything else thrown during the start is a bug. */
export class StartError extends Error {
  override readonly name: string = 'StartError'
}
