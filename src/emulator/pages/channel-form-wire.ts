import type { ChannelMetadata } from '../live/channel';
import { ChannelBody, metadataAfter } from '../live/channel-wire';
import { checkedForm, type FormBody, type ReadForm } from './form-body';

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
  const read = checkedForm(ChannelBody, { metadata }, LABELS);
  return read.ok ? { ok: true, value: metadataAfter(read.value) } : read;
}
