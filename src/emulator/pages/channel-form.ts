import { type Html, html } from '../../http/html';
import type { FormBody } from './form-body';
import { form, selectField, siteField, textField } from './form-elements';

/** The form that makes a channel, filled in as it was sent when something was wrong with it. */
export function channelForm(sites: readonly string[], sent: FormBody, problems: readonly string[]): Html {
  const fields = html`
    ${textField({ name: 'title', label: 'Title', value: sent.text('title'), most: 1000 })}
    ${siteField(sites, sent.text('site'))}
    ${selectField({
      name: 'mode',
      label: 'Publishing mode',
      value: sent.text('mode'),
      hint: 'Auto: viewers watch as soon as the encoder connects. Manual: after you publish.',
      choices: [
        { value: 'auto', label: 'Auto' },
        { value: 'manual', label: 'Manual' },
      ],
    })}
    ${textField({ name: 'tags', label: 'Tags', value: sent.text('tags'), hint: 'Several with commas between them.' })}
    ${selectField({
      name: 'dvr',
      label: 'DVR',
      value: sent.text('dvr'),
      choices: [
        { value: 'on', label: 'On' },
        { value: 'off', label: 'Off' },
      ],
    })}
    ${textField({
      name: 'reconnect',
      label: 'Reconnect window, in seconds',
      value: sent.text('reconnect') || '60',
      hint: 'How long the encoder may be gone without ending the event.',
    })}`;
  return form({
    id: 'new-channel',
    title: 'New channel',
    path: '/dashboard/channels',
    submit: 'Create channel',
    problems,
    fields,
  });
}
