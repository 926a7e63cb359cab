import { type Express, type Request, type RequestHandler, text } from 'express';
import { routeAt } from '../../../http/app';
import { HttpError } from '../../../http/errors';
import { type Content, type Html, html } from '../../../http/html';
import { type Credential, type CredentialParts, isSeenBy, ROLES, type Role } from '../auth';
import { capital } from '../resources/fields';
import { optionsOf } from './elements';
import { type Asked, invalid, type PageRequest, problemsOf, wantsJson } from './forms';
import { FormBody } from './inputs';
import type { PageQuery } from './list';

const SECTIONS = [
  ['/dashboard', 'Overview'],
  ['/dashboard/channels', 'Channels'],
  ['/dashboard/events', 'Events'],
  ['/dashboard/media', 'Media'],
  ['/dashboard/playlists', 'Playlists'],
  ['/dashboard/players', 'Players'],
  ['/dashboard/tags', 'Tags'],
  ['/dashboard/usage', 'Usage'],
  ['/dashboard/webhooks', 'Webhooks'],
  ['/dashboard/requests', 'Requests'],
  ['/dashboard/credentials', 'API credentials'],
  ['/dashboard/clients', 'Key provider'],
  ['/dashboard/stream-tester', 'Stream tester'],
  ['/dashboard/migration', 'v1 → v2'],
] as const;

const SUBJECTS =
  'channel event media metadata poster picture text-track playlist player tag webhook credential file content';
const VERBS =
  'created saved deleted enabled disabled published unpublished chosen added moved renamed removed replaced received requested';
const DONE = new RegExp(`^(${SUBJECTS.replaceAll(' ', '|')})-(${VERBS.replaceAll(' ', '|')})$`);

/** The sentence on the last change. An address contains two known words, as `channel-created`, never a sentence. */
function doneSentence(done: unknown): string | undefined {
  const [, subject, verb] = (typeof done === 'string' && DONE.exec(done)) || [];
  return subject && `The ${subject.replace('-', ' ')} was ${verb}.`;
}

export interface Page {
  /** Without it, the page is that of a section, by the path of its route. */
  readonly title?: string;
  /** The page above this one, which is a section. */
  readonly above?: string;
  readonly aside?: Content;
  readonly intro?: Content;
  readonly content: Content;
  readonly scripts?: readonly ('upload' | 'order' | 'stream-tester')[];
}

export function layout(asked: { readonly request: Asking; readonly query: PageQuery }, page: Page): string {
  const { above, aside, intro, content, scripts = [] } = page;
  const done = doneSentence(asked.query.done);
  const [ofRoute] = /^\/dashboard(?:\/[^/]+)?/.exec(asked.request.route?.path ?? '') ?? [];
  const section = above ?? (page.title === undefined ? ofRoute : undefined);
  const [, name] = SECTIONS.find(([path]) => path === section) ?? [];
  const { title = name } = page;
  return html`<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>${title} · Platform emulator</title>
  <link rel="icon" href="/docs/icon.svg">
  <link rel="stylesheet" href="/docs/oat.min.css">
  <link rel="stylesheet" href="/docs/style.css">
  <link rel="stylesheet" href="/dashboard/style.css">
  <script src="/dashboard/script.js" defer></script>${scripts.map(
    (name) => html`<script src="/dashboard/${name}.js" defer></script>`,
  )}
</head>
<body>
  <a class="skip" href="#content">Skip to the content</a>
  <header class="side"><div>
    <a class="brand" href="/dashboard"><img src="/docs/icon.svg" alt="" width="28" height="28"><span>Platform <span class="muted">emulator</span></span></a>
    <button class="outline small" popovertarget="menu">Menu</button>
    <div class="card menu" id="menu" popover><nav aria-label="Dashboard"><ul>${SECTIONS.map(
      ([path, label]) =>
        html`<li><a href="${path}"${path === section && html` aria-current="page"`}>${label}</a></li>`,
    )}</ul></nav>
    ${userForm(asked.request)}
    <p class="note hint">A mock for development. Without a state file, nothing is kept when it stops.</p></div>
  </div></header>
  <main id="content" tabindex="-1">
    ${above !== undefined && html`<p class="above"><a href="${above}"><span aria-hidden="true">←</span> ${name}</a></p>`}
    <div class="title"><h1 dir="auto">${title}</h1>${aside}</div>
    ${intro !== undefined && html`<p class="intro">${intro}</p>`}
    ${done !== undefined && html`<p class="message" data-variant="success" role="status" tabindex="-1" autofocus>${done}</p>`}
    ${roleOf(asked.request) === 'viewer' && !READING.includes(section ?? '') && html`<p class="message">The user viewer changes nothing. Choose another user before you fill in a form.</p>`}
    ${content}
  </main>
  <p class="unseen" role="status" id="announcement"></p>
</body>
</html>
`.toString();
}

/** Reads a form, which may hold as much as a JSON body of the management API, percent-encoded. */
const readForm = text({ type: 'application/x-www-form-urlencoded', limit: '1mb' });

interface FormRoute {
  /** The id of the form; without it, a refusal has a page of its own. */
  readonly form?: string;
  /** Makes the change. @returns the path of the next page, a page, or an answer for the script, which is empty without one. */
  readonly change: (request: PageRequest, sent: FormBody) => Answer | Promise<Answer>;
  readonly again?: (asked: Asked) => Page;
}

export type Answer = string | object;

export function mountPage(app: Express, path: string, get?: (asked: Asked) => Page, post?: FormRoute): void {
  const route = routeAt(app, path);
  if (get)
    route.get((request: PageRequest, response) => {
      const asked = { request, query: request.query };
      response.send(layout(asked, get(asked)));
    });
  if (post) {
    const { form, change, again = get } = post;
    route.post(readForm, async (request: PageRequest, response) => {
      const sent = new FormBody(typeof request.body === 'string' ? request.body : '');
      try {
        const answer = await change(request, sent);
        if (typeof answer !== 'string') response.status(201).json(answer);
        else if (wantsJson(request)) response.status(204).end();
        else if (answer.startsWith('/')) response.redirect(303, answer);
        else response.send(answer);
      } catch (thrown) {
        const problems = wantsJson(request) ? undefined : problemsOf(thrown);
        if (!problems || !again || form === undefined) throw thrown;
        const asked = { request, query: {}, refused: { form, sent, problems } };
        response.status(400).send(layout(asked, again(asked)));
      }
    });
  }
}

const USER_PATH = '/dashboard/user';
const COOKIE = 'emulator-user';

type Asking = Pick<Request, 'headers' | 'method' | 'originalUrl' | 'route'>;

/** The user who was chosen on a page; an admin before one was. */
export function roleOf({ headers }: Asking): Role {
  const [, name] = new RegExp(`(?:^|; )${COOKIE}=(\\w+)`).exec(headers.cookie ?? '') ?? [];
  return ROLES.find((role) => role === name) ?? 'admin';
}

export function credentialsFor(request: Asking, state: CredentialParts['state']): Credential[] {
  const role = roleOf(request);
  return state.credentials.all().filter((each) => isSeenBy(each, role));
}

function userForm(request: Asking): Html {
  // A form is often sent to an address that has no page.
  const at = request.method === 'GET' ? request.originalUrl : (request.headers.referer ?? '');
  const [, path = ''] = /^(?:https?:\/\/[^/]+)?([^?]*)/.exec(at) ?? [];
  const users = ROLES.map((value) => ({ value, label: capital(value) }));
  return html`<form class="user" method="post" action="${USER_PATH}" autocomplete="off"><input type="hidden" name="back" value="${path}">
      <label for="user">User</label><select id="user" name="user">${optionsOf(users, roleOf(request))}</select><button class="outline small">Switch</button></form>`;
}

export function mountUser(app: Express): void {
  mountPage(app, USER_PATH, undefined, {
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

export const refuseViewers: RequestHandler = (request, _response, next) => {
  if (!['GET', 'HEAD'].includes(request.method) && !READING.includes(request.originalUrl))
    requireRole(request, 'editor');
  next();
};
