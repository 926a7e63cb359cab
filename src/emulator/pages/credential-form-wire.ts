import { parseBody } from '../../http/parse';
import { CREDENTIAL_FIELDS, CredentialBody, wantedCredential } from '../control/credentials-wire';
import type { WantedCredential } from '../manage-credentials';
import type { ReadForm } from './channel-form-wire';
import { type FormBody, sentences } from './form-body';

const LABELS = { name: 'Name', permission: 'Permission', site_ids: 'Sites' };

/** What the dashboard's form asks for, under the same rules as on the control port. */
export function readCredentialForm(form: FormBody): ReadForm<WantedCredential> {
  const body = { name: form.text('name'), permission: form.text('permission'), site_ids: form.texts('site') };
  const parsed = parseBody(CredentialBody, body, CREDENTIAL_FIELDS);
  return parsed.ok
    ? { ok: true, value: wantedCredential(parsed.value) }
    : { ok: false, problems: sentences(parsed.problems, LABELS) };
}
