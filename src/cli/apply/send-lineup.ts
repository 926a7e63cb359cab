import type { CliContext } from '../context';
import type { LineUp, LineUpItem } from '../lineup/lineup';
import { showProgress } from '../progress';
import { type ProviderOptions, providerFields } from '../put-body';
import type { SidecarApi } from '../sidecar-api';
import { chunksOf } from './chunks';
import { namesOf, type Sent, type StreamResult, sendChunks } from './send-chunks';

/** Sends a line-up, or asks with `dryRun` what it would change. */
export async function sendLineUp(
  context: CliContext,
  sidecar: SidecarApi,
  { streams, groups }: LineUp,
  dryRun: boolean,
): Promise<Sent> {
  const total = [...streams, ...groups].reduce((sum, item) => sum + namesOf(item).length, 0);
  const progress = showProgress(context, dryRun ? 'Comparing' : 'Writing', total);
  try {
    return await sendChunks(
      context,
      sidecar,
      [...chunksOf('streams', streams), ...chunksOf('groups', groups)],
      dryRun,
      progress,
    );
  } finally {
    progress.stop();
  }
}

/** The part of a line-up that has some items alone. */
export function among({ streams, groups }: LineUp, due: readonly LineUpItem[]): LineUp {
  const wanted = new Set(due);
  return {
    streams: streams.filter((item) => wanted.has(item)),
    groups: groups.filter((item) => wanted.has(item)),
  };
}

export function isChange(result: StreamResult['result']): boolean {
  return result === 'created' || result === 'changed';
}

/** The defaults of a line-up that the options give. */
export function givenDefaults(context: CliContext, options: ProviderOptions) {
  const { client, clientApiKey, cmaf } = providerFields(context, options);
  return {
    ...(client !== undefined && { client }),
    ...(clientApiKey !== undefined && { clientApiKey }),
    ...(cmaf !== undefined && {
      cmaf: cmaf === true ? true : cmaf === false ? false : (cmaf as 'cenc' | 'cbcs'),
    }),
  };
}
