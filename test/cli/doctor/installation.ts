import { dirname, join } from 'node:path';
import fs from 'fs-extra';
import { temporaryFolder } from '../../support/after-test';
import { POST_MANUAL, POST_MANUAL_FILE } from '../../support/post-manual';

const HOME = `\${com.wowza.wms.context.VHostConfigHome}`;

/** The parts of an Application.xml that a test may change. */
export interface ApplicationParts {
  readonly appType?: string;
  readonly streamType?: string;
  readonly keyDir?: string;
  readonly storageDir?: string;
  readonly packetizers?: string;
  readonly streamers?: string;
  /** The content of `HTTPStreamer`. */
  readonly httpStreamer?: string;
  /** The content of the application's own `Properties`. */
  readonly properties?: string;
}

export const property = (name: string, value: string, type = 'String') =>
  `<Property><Name>${name}</Name><Value>${value}</Value><Type>${type}</Type></Property>`;

export const SESSION_ID = property('cupertinoAppendQueryParamsToEncUrl', 'false', 'Boolean');
export const EXT_X_VERSION = property('cupertinoExtXVersion', '5', 'Integer');

/** A configuration as the packager's own: elements left empty, comments with elements in them, white space everywhere. */
export function applicationXml(name: string, parts: ApplicationParts = {}): string {
  const {
    appType = 'Live',
    streamType = 'live',
    keyDir = `<KeyDir>${HOME}/keys</KeyDir>`,
    storageDir = `${HOME}/content`,
    packetizers = 'cupertinostreamingpacketizer, mpegdashstreamingpacketizer, smoothstreamingpacketizer',
    streamers = 'cupertinostreaming, smoothstreaming, mpegdashstreaming',
    httpStreamer = `<Properties>${SESSION_ID}${EXT_X_VERSION}</Properties>`,
    properties = '',
  } = parts;
  return `<?xml version="1.0" encoding="UTF-8"?>
<Root version="1">
	<Application>
		<Name>${name}</Name>
		<AppType>${appType}</AppType>
		<!-- Take out of the comment to set time limits
		<ApplicationTimeout>60000</ApplicationTimeout>
		<HTTPStreamers>none</HTTPStreamers>
		-->
		<!-- Paths may hold ${HOME} and its like -->
		<Streams>
			<StreamType>${streamType}</StreamType>
			<StorageDir>${storageDir}</StorageDir>
			${keyDir}
			<!-- LiveStreamPacketizers (separated by commas): cupertinostreamingpacketizer, mpegdashstreamingpacketizer -->
			<LiveStreamPacketizers>${packetizers}</LiveStreamPacketizers>
			<Properties>
			</Properties>
		</Streams>
		<Transcoder>
			<LiveStreamTranscoder></LiveStreamTranscoder>
			<Templates>\${SourceStreamName}.xml,transrate.xml</Templates>
			<Properties/>
		</Transcoder>
		<HTTPStreamers>
			${streamers}
		</HTTPStreamers>
		<LiveStreamPacketizer>
			<Properties>${property('cupertinoPlaylistChunkCount', '3', 'Integer')}</Properties>
		</LiveStreamPacketizer>
		<HTTPStreamer>
			<!-- <Properties>${property('cupertinoExtXVersion', '3', 'Integer')}</Properties> -->
			${httpStreamer}
		</HTTPStreamer>
		<Modules><Module><Name>base</Name><Class><![CDATA[com.wowza.wms.module.ModuleCore]]></Class></Module></Modules>
		<Properties>
			${properties}
		</Properties>
	</Application>
</Root>
`;
}

export function smil(...sources: readonly string[]): string {
  const switched = sources.map((source) => `<video src="${source}" system-bitrate="500000"/>`).join('');
  return `<?xml version="1.0" encoding="UTF-8"?><smil><head/><body><switch>${switched}</switch></body></smil>`;
}

/** A sound key file. */
export const KEY_FILE = POST_MANUAL_FILE;
/** Its secrets, which must never be shown. */
export const SECRETS = [POST_MANUAL.cenc.contentkey, POST_MANUAL.fairplay.key, POST_MANUAL.fairplay.iv];

/** The application of content on demand. */
export const VOD = { appType: 'VOD', streamType: 'default', packetizers: '' };

/** A sound installation: two applications, a group of two streams, a stream of its own. */
const SOUND: Readonly<Record<string, string>> = {
  'bin/startup.sh': '#!/bin/sh\n',
  'conf/Application.xml': applicationXml(''),
  'conf/HTTPStreamers.xml':
    '<Root><HTTPStreamers><HTTPStreamer><Name>cupertinostreaming</Name><Properties></Properties></HTTPStreamer></HTTPStreamers></Root>',
  'conf/VHost.xml': '<Root><VHost></VHost></Root>',
  'conf/live/Application.xml': applicationXml('live'),
  'conf/vod/Application.xml': applicationXml('vod', VOD),
  'applications/live/.keep': '',
  'applications/vod/.keep': '',
  'applications/.snapshots/.keep': '',
  'content/news.smil': smil('news_360p', 'mp4:news_720p'),
  'content/camera.stream': 'rtsp://127.0.0.1/camera\n',
  'keys/news_360p.key': KEY_FILE,
  'keys/news_720p.key': KEY_FILE,
  'keys/camera.stream.key': KEY_FILE,
};

/** Builds the sound installation with some files otherwise (undefined: left out), in a folder that is removed after the test. */
export async function install(changes: Readonly<Record<string, string | undefined>> = {}): Promise<string> {
  const root = await fs.realpath(await temporaryFolder());
  for (const [path, text] of Object.entries({ ...SOUND, ...changes })) {
    if (text === undefined) continue;
    await fs.mkdirp(dirname(join(root, path)));
    await fs.writeFile(join(root, path), text);
  }
  // Temporary folders are private; a packager's user must get in.
  for (const path of ['.', 'keys']) await fs.chmod(join(root, path), 0o755).catch(() => undefined);
  return root;
}
