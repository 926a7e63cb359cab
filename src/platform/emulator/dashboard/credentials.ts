import type { Express, Request } from 'express';
import { onlyMethods } from '../../../http/app';
import { HttpError } from '../../../http/errors';
import { type Content, type Html, html } from '../../../http/html';
import {
  type Credential,
  createCredential,
  deleteCredential,
  PERMISSIONS,
  reachesSite,
  replaceCredential,
  type WantedCredential,
} from '../auth';
import type { EmulatorContext } from '../context';
import { CredentialBody } from '../control/credentials';
import { confirmedAction, copyable, live, secret, table, time } from './elements';
import {
  checkedForm,
  FormBody,
  form,
  type ListView,
  linkToForm,
  listAndForm,
  type ReadForm,
  readForm,
  selectField,
  sitesField,
  textField,
} from './forms';
import { layout } from './layout';
import { type Searchable, search } from './search';

const PATH = '/dashboard/credentials';

type OneCredential = Request<{ credentialId: string }>;

export function mountCredentialPages(app: Express, context: EmulatorContext): void {
  app
    .route(PATH)
    .get((request, response) => {
      const view = { query: request.query, sent: new FormBody(), problems: [] };
      response.send(credentialsPage(context, view));
    })
    .post(readForm, (request, response) => {
      const sent = new FormBody(request.body);
      const read = readCredentialForm(sent);
      if (!read.ok) {
        response.status(400).send(credentialsPage(context, { query: {}, sent, problems: read.problems }));
        return;
      }
      createCredential(context, adminOf(context, read.value.siteIds ?? []), read.value);
      response.redirect(303, `${PATH}?done=credential-created`);
    })
    .all(onlyMethods('GET', 'POST'));

  for (const [act, done, change] of [
    ['delete', 'credential-deleted', deleteCredential],
    ['replace', 'credential-replaced', replaceCredential],
  ] as const) {
    app
      .route(`${PATH}/:credentialId/${act}`)
      .post((request: OneCredential, response) => {
        const credential = credentialOf(context, request.params.credentialId);
        change(context, adminOf(context, credential.siteIds), credential);
        response.redirect(303, `${PATH}?done=${done}`);
      })
      .all(onlyMethods('POST'));
  }
}

/** Who uses the dashboard administers the account: credentials change in the name of an Admin of their sites. */
function adminOf({ state }: EmulatorContext, siteIds: readonly string[]): Credential {
  const admins = state.credentials.list().filter(({ permission }) => permission === 'Admin');
  const admin = admins.find((each) => siteIds.every((site) => reachesSite(each, site)));
  if (admin) return admin;
  const description = 'No Admin credential reaches all of these sites, so none can answer for this change.';
  throw new HttpError(403, { code: 'site_forbidden', description });
}

function credentialOf({ state }: EmulatorContext, id: string): Credential {
  const credential = state.credentials.find(id);
  if (credential) return credential;
  const description = 'There is no credential with this id. It may have been deleted.';
  throw new HttpError(404, { code: 'not_found', description });
}

const MAY: Readonly<Record<Credential['permission'], string>> = {
  Viewer: 'Viewer: reads',
  Editor: 'Editor: also creates and changes',
  Admin: 'Admin: also makes credentials',
};

const CREDENTIALS: Searchable<Credential> = {
  path: PATH,
  noun: { one: 'credential', many: 'credentials' },
  hint: 'key name, id or site',
  texts: ({ id, name, siteIds }) => [name, id, ...siteIds],
  filters: [
    {
      name: 'permission',
      label: 'Filter by permission',
      unset: 'Any permission',
      choices: PERMISSIONS.map((permission) => ({ value: permission, label: permission })),
      of: ({ permission }) => permission,
    },
  ],
  empty: html`<p>There is no key name yet.</p>`,
};

function credentialsPage({ state, seeds }: EmulatorContext, { query, sent, problems }: ListView): string {
  const found = search(state.credentials.list(), query, CREDENTIALS);
  const list = table({
    caption: 'API credentials',
    columns: ['Key name', 'Permission', 'Sites', 'Created', 'Secret', 'Actions'],
    rows: found.items.map(rowOf),
    empty: found.none,
  });
  return layout({
    title: 'API credentials',
    section: PATH,
    aside: linkToForm('new-credential', 'New credential'),
    intro: html`Send a secret to the management API as <code>Authorization: Bearer …</code>`,
    content: listAndForm(
      html`<section aria-labelledby="v2-title"><h2 id="v2-title">V2 API credentials</h2>${found.form}${live('credentials', html`${found.summary}${list}${found.links}`)}</section>${v1Credentials(seeds)}`,
      credentialForm(seeds.siteIds, sent, problems),
      problems,
    ),
    done: query.done,
  });
}

/** Each site has one key and secret for v1, which are as they were configured. */
function v1Credentials({ siteIds, v1Secret }: EmulatorContext['seeds']): Html {
  return html`<section aria-labelledby="v1-title"><h2 id="v1-title">V1 API credentials</h2>${table({
    caption: 'Credentials of Management API v1',
    columns: ['Site', 'Key', 'Secret'],
    rows: siteIds.map((site) => [
      html`<code>${site}</code>`,
      copyable(`v1-key-${site}`, `key of ${site}`, site),
      secret(`v1-secret-${site}`, `of ${site} for v1`, v1Secret, 'Show Credentials', 'Hide Credentials'),
    ]),
    empty: '',
  })}</section>`;
}

function rowOf({ id, name, permission, siteIds, created, secret: text }: Credential): Content[] {
  return [
    html`<span class="name">${name}</span><span class="sub"><code>${id}</code></span>`,
    permission,
    siteIds.map((site) => html`<code>${site}</code> `),
    time(created),
    secret(`secret-${id}`, `of ${name}`, text, 'Show Credentials', 'Hide Credentials'),
    html`<div class="actions">
      ${confirmedAction(`${PATH}/${id}/replace`, 'Replace', name, 'A new secret takes the place of this one, which is refused from then on.')}
      ${confirmedAction(`${PATH}/${id}/delete`, 'Delete', name, 'Its secret is refused from then on.')}
    </div>`,
  ];
}

function credentialForm(sites: readonly string[], sent: FormBody, problems: readonly string[]): Html {
  const fields = html`
    ${textField({ name: 'name', label: 'Key name', value: sent.text('name'), required: true, maxLength: 200 })}
    ${selectField({
      name: 'permission',
      label: 'Permission',
      value: sent.text('permission'),
      choices: PERMISSIONS.map((permission) => ({ value: permission, label: MAY[permission] })),
    })}
    ${sitesField(sites, sent.texts('site'))}`;
  return form({
    id: 'new-credential',
    title: 'New credential',
    path: PATH,
    submit: 'Add key name',
    problems,
    fields,
  });
}

const LABELS = { name: 'Name', permission: 'Permission', site_ids: 'Sites' };

/** What the dashboard's form asks for, under the same rules as on the control port. */
function readCredentialForm(form: FormBody): ReadForm<WantedCredential> {
  const body = { name: form.text('name'), permission: form.text('permission'), site_ids: form.texts('site') };
  return checkedForm(CredentialBody, body, LABELS);
}
