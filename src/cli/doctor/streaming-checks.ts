import { nearest } from '../../http/nearest';
import type { ApplicationSettings } from './application-settings';
import { type Finding, fault, ok, warning } from './finding';

const STREAMERS = 'Root/Application/HTTPStreamers';
const PACKETIZERS = 'Root/Application/Streams/LiveStreamPacketizers';
const CMAF = 'cmafstreamingpacketizer';

interface Protocol {
  readonly code: string;
  readonly name: string;
  readonly streamer: string;
  readonly packetizer: string;
}

const HLS: Protocol = {
  code: 'hls',
  name: 'HLS',
  streamer: 'cupertinostreaming',
  packetizer: 'cupertinostreamingpacketizer',
};
const DASH: Protocol = {
  code: 'dash',
  name: 'MPEG-DASH',
  streamer: 'mpegdashstreaming',
  packetizer: 'mpegdashstreamingpacketizer',
};

/**
 * How an application gets its media. A live one packages what an encoder sends; an edge passes on what its origin has
 * packaged; an on-demand one packages files as they are played, and needs no packetizer.
 */
export type Delivery = 'live' | 'edge' | 'on demand';

export function deliveryOf({ appType = '', streamType = '' }: ApplicationSettings): Delivery {
  if (/edge/i.test(appType) || streamType.endsWith('-edge')) return 'edge';
  const isFile = streamType === '' ? !/^live/i.test(appType) : ['default', 'file'].includes(streamType);
  return isFile || /^vod/i.test(appType) ? 'on demand' : 'live';
}

/** Checks that an application serves HLS and MPEG-DASH, packages both, and leaves its keys to the key files. */
export function checkStreaming(application: ApplicationSettings): Finding[] {
  return [
    ...checkProtocol(application, HLS),
    ...checkProtocol(application, DASH),
    ...checkKeySource(application),
  ];
}

/** Whether HLS or MPEG-DASH of an application leaves by the CMAF packetizer alone, which has key-file lines of its own. */
export function needsCmafLines(application: ApplicationSettings): boolean {
  const { packetizers } = application;
  return (
    deliveryOf(application) === 'live' &&
    packetizers.includes(CMAF) &&
    !(packetizers.includes(HLS.packetizer) && packetizers.includes(DASH.packetizer))
  );
}

function checkProtocol(application: ApplicationSettings, protocol: Protocol): Finding[] {
  const { code, name, streamer, packetizer } = protocol;
  const { streamers, packetizers } = application;
  const findings: Finding[] = [];
  if (!streamers.includes(streamer)) {
    findings.push(
      fault(
        `${code}_not_served`,
        `${name} is not served: HTTPStreamers has no ${streamer}${meant(streamer, streamers)}`,
        `change ${STREAMERS} to`,
        listXml('HTTPStreamers', streamer, streamers),
      ),
    );
  }
  const delivery = deliveryOf(application);
  const packages = [packetizer, CMAF].filter((known) => packetizers.includes(known));
  if (delivery === 'live' && packages.length === 0) {
    findings.push(
      fault(
        `${code}_not_packaged`,
        `${name} is not packaged: LiveStreamPacketizers has neither ${packetizer} nor ${CMAF}${meant(packetizer, packetizers)}`,
        `change ${PACKETIZERS} to`,
        listXml('LiveStreamPacketizers', packetizer, packetizers),
      ),
    );
  }
  if (findings.length > 0) return findings;
  const how = delivery === 'live' ? `packaged (${packages.join(', ')})` : `${delivery}`;
  return [
    ok(
      code,
      `${name} is served (${streamer}) and ${delivery === 'live' ? how : `needs no packetizer, ${how}`}`,
    ),
  ];
}

function checkKeySource({ settings }: ApplicationSettings): Finding[] {
  const byModule = settings.find(
    ({ name, value }) => name === 'cupertinoEncryptionAPIBased' && value.toLowerCase() === 'true',
  );
  if (!byModule) return [];
  return [
    warning(
      'keys_from_module',
      'The HLS keys come from a module, not from key files: cupertinoEncryptionAPIBased is true',
      `take it out of ${byModule.place} when the key files are to count`,
    ),
  ];
}

/** What a list most likely meant by a name that it misspells. */
function meant(wanted: string, list: readonly string[]): string {
  const slip = list.find(
    (name) => name !== wanted && nearest(name, [...KNOWN]) === wanted && !KNOWN.has(name),
  );
  return slip === undefined ? '' : ` (${slip} is none)`;
}

function listXml(element: string, missing: string, list: readonly string[]): string {
  const kept = list.filter((name) => KNOWN.has(name) || nearest(name, [...KNOWN]) !== missing);
  return `<${element}>${[...kept, missing].join(', ')}</${element}>`;
}

const KNOWN = new Set(
  ['cupertino', 'smooth', 'sanjose', 'mpegdash', 'dvr', 'cmaf', 'webm'].flatMap((protocol) => [
    `${protocol}streaming`,
    `${protocol}streamingpacketizer`,
    `${protocol}streamingrepeater`,
  ]),
).add('dvrchunkstreaming');
