import { type Content, type Html, html } from '../../kernel/html';
import type { EmulatorContext } from '../context';
import type { Channel } from '../live/channel';
import { channelForm } from './channel-form';
import { action, live, secret, table } from './elements';
import type { FormBody } from './form-body';
import { layout } from './layout';
import { channelPill, titleOf } from './live-words';
import { pageOf } from './pager';

const PATH = '/dashboard/channels';

export interface ChannelsView {
  readonly query: Readonly<Record<string, unknown>>;
  readonly sent: FormBody;
  readonly problems: readonly string[];
}

export function channelsPage({ state, seeds }: EmulatorContext, view: ChannelsView): string {
  const { items, links } = pageOf(state.channels.all(), view.query.page, PATH);
  const list = table({
    caption: 'Channels',
    columns: ['Channel', 'State', 'Mode', 'Stream key', 'Actions'],
    rows: items.map((channel) => rowOf(channel, seeds.siteIds.length > 1)),
    empty: html`<p>There is no channel yet. Make one with the form below, or with the management API.</p>`,
  });
  return layout({
    title: 'Channels',
    section: PATH,
    intro: 'A channel takes the stream of one encoder at a time. Each broadcast is a live event.',
    content: html`${live('channels', html`${list}${links}`)}${channelForm(seeds.siteIds, view.sent, view.problems)}`,
    done: view.query.done,
  });
}

function rowOf(channel: Channel, showSite: boolean): Content[] {
  const title = titleOf(channel);
  return [
    html`<a class="name" href="${PATH}/${channel.id}">${title}</a><span class="sub"><code>${channel.id}</code>${
      showSite && html` · site <code>${channel.siteId}</code>`
    }</span>`,
    channelPill(channel),
    channel.metadata.publishingMode,
    secret(`key-${channel.id}`, `stream key of ${title}`, channel.streamKey),
    html`<div class="actions">${enableOrDisable(channel, PATH)}</div>`,
  ];
}

/** The button that makes the encoder's connection possible or impossible; it leads back to where it stands. */
export function enableOrDisable(channel: Channel, from: string): Html {
  const back = from === PATH ? '?back=list' : '';
  const path = `${PATH}/${channel.id}`;
  return channel.enabled
    ? action(`${path}/disable${back}`, 'Disable', titleOf(channel))
    : action(`${path}/enable${back}`, 'Enable', titleOf(channel));
}
