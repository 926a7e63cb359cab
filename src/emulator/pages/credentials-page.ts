import { type Content, type Html, html } from '../../http/html';
import type { EmulatorContext } from '../context';
import { type Credential, PERMISSIONS } from '../credentials';
import { confirmedAction, live, secret, table, time } from './elements';
import type { FormBody } from './form-body';
import { form, linkToForm, listAndForm, selectField, sitesField, textField } from './form-elements';
import { layout } from './layout';
import { type PageQuery, type Searchable, search } from './search';

const PATH = '/dashboard/credentials';

const MAY: Readonly<Record<Credential['permission'], string>> = {
  Viewer: 'Viewer: reads',
  Editor: 'Editor: also creates and changes',
  Admin: 'Admin: also makes credentials',
};

export interface CredentialsView {
  readonly query: PageQuery;
  readonly sent: FormBody;
  readonly problems: readonly string[];
}

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

export function credentialsPage(
  { state, seeds }: EmulatorContext,
  { query, sent, problems }: CredentialsView,
): string {
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
      html`<section aria-labelledby="v2-title"><h2 id="v2-title">V2 API credentials</h2>${found.form}${live('credentials', html`${found.summary}${list}${found.links}`)}</section>`,
      credentialForm(seeds.siteIds, sent, problems),
      problems,
    ),
    done: query.done,
  });
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
    ${textField({ name: 'name', label: 'Key name', value: sent.text('name'), required: true, most: 200 })}
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
