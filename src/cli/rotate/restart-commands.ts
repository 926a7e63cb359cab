import { shellWord } from '../shell-word';

/** Where Wowza Streaming Engine answers REST calls. */
export const PACKAGER_URL = 'http://127.0.0.1:8087';

export interface Restart {
  readonly streamid: string;
  /** A line for a shell. */
  readonly command: string;
}

/**
 * The REST calls that let each stream start anew at a Wowza Streaming Engine, on its default server and virtual host:
 * the stream is the last part of its id, the application what stands before it unless named. An encoder is
 * disconnected and connects again by itself; a stream that the packager pulls (`.stream`) is reset.
 * PACKAGER_LOGIN is `user:password`; an application that isn't known is left to APPLICATION.
 */
export function restartCommands(
  streamIds: readonly string[],
  { application, packagerUrl }: { readonly application: string | undefined; readonly packagerUrl: string },
): Restart[] {
  const server = `${packagerUrl.replace(/\/$/, '')}/v2/servers/_defaultServer_/vhosts/_defaultVHost_`;
  return streamIds.map((streamid) => {
    const parts = streamid.split('/');
    const name = parts.at(-1) ?? '';
    const of = application ?? parts.at(-2);
    const action = name.endsWith('.stream') ? 'resetStream' : 'disconnectStream';
    const rest = `/instances/_definst_/incomingstreams/${encodeURIComponent(name)}/actions/${action}`;
    const address =
      of === undefined
        ? `${shellWord(`${server}/applications/`)}"\${APPLICATION:?}"${shellWord(rest)}`
        : shellWord(`${server}/applications/${encodeURIComponent(of)}${rest}`);
    const call = `curl -sS --fail-with-body --anyauth -u "$PACKAGER_LOGIN" -X PUT`;
    return { streamid, command: `${call} -H 'accept: application/json' ${address}` };
  });
}
