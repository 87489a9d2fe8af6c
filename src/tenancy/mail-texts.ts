import { emailLinkHours, invitationDays, resetLinkHours } from '../kernel/limits.ts'
import type { Mail } from './mail.ts'
import type { Invitation } from './types.ts'

/** What people are told by mail: plain text, one thing to do, the line that does it. */

export function verificationMail(to: string, { publicUrl, token }: { publicUrl: string; token: string }): Mail {
  return {
    to,
    subject: 'Verify your e-mail address',
    text: `Somebody, most likely you, signed up at ${publicUrl} with this address.

Verify it within ${emailLinkHours} hours:

${post(`${publicUrl}/v1/email_verifications`, { token })}

If it was not you, do nothing: without this step nobody can sign in with your address.
`,
  }
}

/** To somebody who has an account, when their address is used to sign up again. */
export function accountExistsMail(to: string, { publicUrl }: { publicUrl: string }): Mail {
  return {
    to,
    subject: 'You have an account already',
    text: `Somebody, perhaps you, tried to sign up at ${publicUrl} with this address. It has an account already; nothing was changed.

If you forgot the password, ask for a new one:

${post(`${publicUrl}/v1/password_resets`, { email: to })}
`,
  }
}

export function resetMail(to: string, { publicUrl, token }: { publicUrl: string; token: string }): Mail {
  return {
    to,
    subject: 'Set a new password',
    text: `Somebody, most likely you, asked for a new password at ${publicUrl}.

Set it within ${resetLinkHours} hour; every session you have ends with it:

${post(`${publicUrl}/v1/password_resets/confirm`, { token, password: 'NEW PASSWORD' })}

If it was not you, do nothing: your password stays as it is.
`,
  }
}

export function invitationMail(
  { id, email, role }: Invitation,
  { publicUrl, workspace, from }: { publicUrl: string; workspace: string; from: string },
): Mail {
  return {
    to: email,
    // Names are other people's text: one line, and not the whole of a subject.
    subject: `You are invited to ${oneLine(workspace)}`,
    text: `${oneLine(from)} invites you to the workspace "${oneLine(workspace)}" at ${publicUrl} as ${role}.

Sign up with this address if you have no account, sign in, and accept within ${invitationDays} days with your session token:

curl -X POST ${publicUrl}/v1/invitations/${id}/accept -H 'Authorization: Bearer YOUR_TOKEN'
`,
  }
}

function post(url: string, body: object): string {
  return `curl -X POST ${url} -H 'Content-Type: application/json' -d '${JSON.stringify(body).replaceAll("'", "'\\''")}'`
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').slice(0, 100)
}
