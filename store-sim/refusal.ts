/** An answer that isn't a success, with the body as the surface writes it. */
export class Refusal extends Error {
  readonly status: number
  readonly body: unknown
  readonly headers: Record<string, string>

  constructor(status: number, body: unknown, headers: Record<string, string> = {}) {
    super(JSON.stringify(body))
    this.status = status
    this.body = body
    this.headers = headers
  }
}

/** Of the simulator's own surface, `/sim`. */
export function refuse(code: string, message: string, status = 400): Refusal {
  return new Refusal(status, { error: { code, message } })
}

export function appleError(status: number, errorCode: number, errorMessage: string): Refusal {
  return new Refusal(status, { errorCode, errorMessage })
}

export function googleError(code: number, message: string, status: string, reason = 'invalid'): Refusal {
  return new Refusal(code, {
    error: { code, message, status, errors: [{ message, domain: 'androidpublisher', reason }] },
  })
}
