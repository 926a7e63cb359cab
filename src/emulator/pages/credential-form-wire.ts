import { CredentialBody, wantedCredential } from '../control/credentials-wire';
import type { WantedCredential } from '../manage-credentials';
import { checkedForm, type FormBody, type ReadForm } from './form-body';

const LABELS = { name: 'Name', permission: 'Permission', site_ids: 'Sites' };

/** What the dashboard's form asks for, under the same rules as on the control port. */
export function readCredentialForm(form: FormBody): ReadForm<WantedCredential> {
  const body = { name: form.text('name'), permission: form.text('permission'), site_ids: form.texts('site') };
  const read = checkedForm(CredentialBody, body, LABELS);
  return read.ok ? { ok: true, value: wantedCredential(read.value) } : read;
}
