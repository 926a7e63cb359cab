import { parseBody } from '../../http/parse';
import type { ChannelMetadata } from '../live/channel';
import { CHANNEL_BODY_FIELDS, ChannelBody, metadataAfter } from '../live/channel-wire';
import { type FormBody, sentences } from './form-body';

export type ReadForm<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: string[] };

const LABELS = {
  'metadata.title': 'Title',
  'metadata.tags': 'Tags: one',
  'metadata.publishing_mode': 'Publishing mode',
  'metadata.dvr': 'DVR',
  'metadata.reconnect_window': 'Reconnect window',
};

/** A channel's metadata out of the dashboard's form, under the management API's own rules. */
export function readChannelForm(form: FormBody): ReadForm<ChannelMetadata> {
  const seconds = form.text('reconnect').trim();
  const metadata = {
    title: form.text('title').trim(),
    tags: form.list('tags'),
    publishing_mode: form.text('mode'),
    dvr: form.text('dvr'),
    reconnect_window: seconds === '' ? undefined : Number(seconds),
  };
  const parsed = parseBody(ChannelBody, { metadata }, CHANNEL_BODY_FIELDS);
  return parsed.ok
    ? { ok: true, value: metadataAfter(parsed.value) }
    : { ok: false, problems: sentences(parsed.problems, LABELS) };
}
