import type { Express, Request, RequestHandler } from 'express';
import { HttpError } from '../../../http/errors';
import { type Html, html } from '../../../http/html';
import { type Credential, type CredentialParts, isSeenBy, ROLES, type Role } from '../auth';
import { optionsOf, titleCase } from './elements';
import { invalid, mountPage } from './forms';

const PATH = '/dashboard/user';
const COOKIE = 'emulator-user';

/** A request for a page. */
export type Asking = Pick<Request, 'headers' | 'originalUrl'>;

/** The user who was chosen on a page; an admin before one was. */
export function roleOf({ headers }: Asking): Role {
  const [, name] = new RegExp(`(?:^|; )${COOKIE}=(\\w+)`).exec(headers.cookie ?? '') ?? [];
  return ROLES.find((role) => role === name) ?? 'admin';
}

/** The credentials that the user of a page sees, oldest first. */
export function credentialsFor(request: Asking, state: CredentialParts['state']): Credential[] {
  const role = roleOf(request);
  return state.credentials.all().filter((each) => isSeenBy(each, role));
}

/** The choice of the user on every page. */
export function userForm(request: Asking): Html {
  const [path] = request.originalUrl.split('?');
  const users = ROLES.map((value) => ({ value, label: titleCase(value) }));
  return html`<form class="user" method="post" action="${PATH}"><input type="hidden" name="back" value="${path}">
      <label for="user">User</label><select id="user" name="user">${optionsOf(users, roleOf(request))}</select><button class="outline small">Switch</button></form>`;
}

export function mountUser(app: Express): void {
  mountPage(app, PATH, undefined, {
    change({ res }, sent) {
      const user = ROLES.find((role) => role === sent.text('user'));
      if (!user) throw invalid(`There is no such user. The users are ${ROLES.join(', ')}.`);
      res?.cookie(COOKIE, user, { path: '/dashboard', httpOnly: true, sameSite: 'strict' });
      const back = sent.text('back');
      return /^\/dashboard(?:\/|$)/.test(back) ? back : '/dashboard';
    },
  });
}

/** These pages change nothing when their forms are sent. */
const READING = ['/dashboard/stream-tester', '/dashboard/migration'];

/** @throws HttpError 403 for a user whose role is less than the one that a change needs. */
export function requireRole(request: Asking, needed: Role): void {
  if (ROLES.indexOf(roleOf(request)) >= ROLES.indexOf(needed)) return;
  const description = `This needs the user ${needed}; the page has ${roleOf(request)}. Choose another user.`;
  throw new HttpError(403, { code: 'permission_insufficient', description });
}

/** A viewer reads. */
export const refuseViewers: RequestHandler = (request, _response, next) => {
  if (!['GET', 'HEAD'].includes(request.method) && !READING.includes(request.originalUrl))
    requireRole(request, 'editor');
  next();
};
