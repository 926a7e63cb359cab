import type { Express } from 'express';
import * as z from 'zod';
import { HttpError } from '../../../http/errors';
import { html } from '../../../http/html';
import {
  type Credential,
  createCredential,
  deleteCredential,
  PERMISSIONS,
  ROLES,
  reachesSite,
  replaceCredential,
} from '../auth';
import type { EmulatorContext } from '../context';
import { CredentialBody } from '../control/credentials';
import { validated } from '../json-body';
import {
  type Column,
  confirmedAction,
  copyable,
  plainChoices,
  secret,
  section,
  table,
  time,
} from './elements';
import { type Asked, absent, formCard, refusedFirst } from './forms';
import { readFields } from './inputs';
import { credentialsFor, mountPage, requireRole, roleOf } from './layout';
import { type List, listOf } from './list';

const PATH = '/dashboard/credentials';

export function mountCredentialPages(app: Express, context: EmulatorContext): void {
  const { state, seeds } = context;
  const says = 'A Viewer reads, an Editor also creates and changes, an Admin also makes credentials.';
  const fields = {
    name: { schema: z.string().max(200), required: true, says: 'The name of the key.' },
    permission: { schema: z.enum(PERMISSIONS), required: true, says },
    site_ids: { schema: z.array(z.enum([...seeds.siteIds])), required: true, says: 'The sites.' },
    roles: {
      schema: z.array(z.enum(ROLES)),
      says: 'The users who see and use it; with none ticked, all. An admin always does.',
    },
  } as const;
  const page = (asked: Asked) => {
    const isAdmin = roleOf(asked.request) === 'admin';
    return {
      aside: isAdmin && html`<a class="button" href="#new">New credential</a>`,
      intro: html`Send a secret to the management API as <code>Authorization: Bearer …</code>`,
      content: refusedFirst(asked, {
        v2: section(
          'v2',
          'V2 API credentials',
          listOf('credentials', credentialsFor(asked.request, state), asked.query, {
            ...CREDENTIALS,
            columns: () => (isAdmin ? [...COLUMNS, ACTIONS] : COLUMNS),
          }),
        ),
        v1: v1Credentials(seeds),
        new:
          isAdmin &&
          formCard(asked, 'New credential', { id: 'new', path: PATH, submit: 'Add key name', fields }),
      }),
    };
  };
  mountPage(app, PATH, page, {
    form: 'new',
    change(request, sent) {
      requireRole(request, 'admin');
      const wanted = validated(CredentialBody, readFields(fields, sent));
      createCredential(context, adminOf(context, wanted.siteIds ?? []), wanted);
      return `${PATH}?done=credential-created`;
    },
  });
  for (const [act, change] of Object.entries({ delete: deleteCredential, replace: replaceCredential }))
    mountPage(app, `${PATH}/:credentialId/${act}`, undefined, {
      change(request) {
        const { credentialId } = request.params;
        const credential = credentialsFor(request, state).find(({ id }) => id === credentialId);
        if (!credential) throw absent('There is no credential with this id.');
        requireRole(request, 'admin');
        change(context, adminOf(context, credential.siteIds), credential);
        return `${PATH}?done=credential-${act}d`;
      },
    });
}

/** The Admin credential of these sites, which authorizes changes of the dashboard to credentials. */
function adminOf({ state }: EmulatorContext, siteIds: readonly string[]): Credential {
  const admins = state.credentials.all().filter(({ permission }) => permission === 'Admin');
  const admin = admins.find((each) => siteIds.every((site) => reachesSite(each, site)));
  if (admin) return admin;
  const description = 'No Admin credential reaches all of these sites, so none can answer for this change.';
  throw new HttpError(403, { code: 'site_forbidden', description });
}

const COLUMNS: readonly Column<Credential>[] = [
  [
    'Key name',
    ({ id, name }) =>
      html`<span class="name" dir="auto">${name}</span><span class="sub"><code>${id}</code></span>`,
  ],
  ['Permission', ({ permission }) => permission],
  ['Sites', ({ siteIds }) => siteIds.map((site) => html`<code>${site}</code> `)],
  ['Created', ({ created }) => time(created)],
  ['Users', ({ roles }) => roles?.join(', ') ?? 'all'],
  ['Secret', ({ id, name, secret: text }) => secret(`secret-${id}`, `of ${name}`, text, ' Credentials')],
];

const ACTIONS: Column<Credential> = [
  'Actions',
  ({ id, name }) => html`<div class="actions">
    ${confirmedAction(`${PATH}/${id}/replace`, 'Replace', name, 'A new secret replaces this one, which is refused from then on.')}
    ${confirmedAction(`${PATH}/${id}/delete`, 'Delete', name, 'Its secret is refused from then on.')}
  </div>`,
];

const CREDENTIALS: Omit<List<Credential>, 'columns'> = {
  path: PATH,
  noun: { one: 'credential', many: 'credentials' },
  caption: 'API credentials',
  hint: 'key name, id or site',
  texts: ({ id, name, siteIds }) => [name, id, ...siteIds],
  filters: [{ name: 'permission', choices: plainChoices(PERMISSIONS), of: ({ permission }) => permission }],
  empty: html`<p>There is no key name yet.</p>`,
};

/** Each site has one key and secret for v1, as they are configured. */
function v1Credentials({ siteIds, v1Secret }: EmulatorContext['seeds']) {
  const list = table(
    'Credentials of Management API v1',
    [
      ['Site', (site) => html`<code>${site}</code>`],
      ['Key', (site) => copyable(`key of ${site}`, site)],
      ['Secret', (site) => secret(`v1-secret-${site}`, `of ${site} for v1`, v1Secret, ' Credentials')],
    ],
    siteIds,
    undefined,
  );
  return section('v1', 'V1 API credentials', list);
}
