import { type Content, type Html, html } from '../../http/html';
import type { EmulatorContext } from '../context';
import type { Channel } from '../live/channel';
import { channelForm } from './channel-form';
import { action, live, secret, table } from './elements';
import type { FormBody } from './form-body';
import { linkToForm, listAndForm } from './form-elements';
import { layout } from './layout';
import { CHANNEL_CHOICES, channelPill, channelWord, titleOf } from './live-words';
import { type PageQuery, type Searchable, search } from './search';

const PATH = '/dashboard/channels';

export interface ChannelsView {
  readonly query: PageQuery;
  readonly sent: FormBody;
  readonly problems: readonly string[];
}

const CHANNELS: Searchable<Channel> = {
  path: PATH,
  noun: { one: 'channel', many: 'channels' },
  hint: 'title, id, tag or site',
  texts: ({ id, siteId, metadata: { title, tags } }) => [title, id, siteId, ...tags],
  filters: [
    { name: 'state', label: 'State', unset: 'Any state', choices: CHANNEL_CHOICES, of: channelWord },
    {
      name: 'mode',
      label: 'Mode',
      unset: 'Any mode',
      choices: [
        { value: 'auto', label: 'auto' },
        { value: 'manual', label: 'manual' },
      ],
      of: ({ metadata }) => metadata.publishingMode,
    },
  ],
  empty: html`<p>There is no channel yet. Make one with the form below, or with the management API.</p>`,
};

export function channelsPage({ state, seeds }: EmulatorContext, view: ChannelsView): string {
  const { items, form, summary, none, links, query } = search(state.channels.all(), view.query, CHANNELS);
  const list = table({
    caption: 'Channels',
    columns: ['Channel', 'State', 'Mode', 'Stream key', 'Actions'],
    rows: items.map((channel) => rowOf(channel, { showSite: seeds.siteIds.length > 1, query })),
    empty: none,
  });
  return layout({
    title: 'Channels',
    section: PATH,
    aside: linkToForm('new-channel', 'New channel'),
    intro: 'A channel takes the stream of one encoder at a time. Each broadcast is a live event.',
    content: listAndForm(
      html`${form}${live('channels', html`${summary}${list}${links}`)}`,
      channelForm(seeds.siteIds, view.sent, view.problems),
      view.problems,
    ),
    done: view.query.done,
  });
}

/** The address of the list, with what was searched for in it. */
export function channelsAddress(query: PageQuery, done: string): string {
  const asked = new URLSearchParams(search([], query, CHANNELS).query);
  asked.set('done', done);
  return `${PATH}?${asked}`;
}

function rowOf(channel: Channel, { showSite, query }: { showSite: boolean; query: string }): Content[] {
  const title = titleOf(channel);
  return [
    html`<a class="name" href="${PATH}/${channel.id}">${title}</a><span class="sub"><code>${channel.id}</code>${
      showSite && html` · site <code>${channel.siteId}</code>`
    }</span>`,
    channelPill(channel),
    channel.metadata.publishingMode,
    secret(`key-${channel.id}`, `stream key of ${title}`, channel.streamKey),
    html`<div class="actions">${enableOrDisable(channel, `?back=list${query && `&${query}`}`)}</div>`,
  ];
}

/** The button that makes the encoder's connection possible or impossible. `back` tells where it leads to then. */
export function enableOrDisable(channel: Channel, back = ''): Html {
  const path = `${PATH}/${channel.id}`;
  return channel.enabled
    ? action(`${path}/disable${back}`, 'Disable', titleOf(channel))
    : action(`${path}/enable${back}`, 'Enable', titleOf(channel));
}
