import { removeTag, renameTag } from '../library/tags';
import { queryUsage } from '../library/usage';
import { V1Error } from './errors';
import { asJson, type Handler, notFound, optional, required, type Translated } from './translate';

/** Tags are in v2 what media have, so what is done to a tag is done to all media of the site. */
export const TAGS: Readonly<Record<'delete' | 'update', Handler>> = {
  delete(call) {
    const name = required(call, 'name');
    if (removeTag(call.context, call.siteId, { name }) === 0) throw notFound('name', name);
    return {};
  },

  update(call) {
    const old_name = required(call, 'name');
    const new_name = required(call, 'new_name');
    if (renameTag(call.context, call.siteId, { old_name, new_name }) > 0 || old_name === new_name) return {};
    throw notFound('name', old_name);
  },
};

export const USAGE: Readonly<Record<'show', Handler>> = {
  show(call) {
    const { context, siteId } = call;
    const account = optional(call, 'account_key');
    if (account !== undefined && account !== siteId) throw notFound('account_key', account);
    const days = { start_date: dayIn(call, 'start_date'), end_date: dayIn(call, 'end_date') };
    const { start_date, end_date, results } = queryUsage(context, [siteId], days);
    return { account: { key: siteId }, start_date, end_date, usage: results.map(asJson) };
  },
};

const LAST_SECOND = 253_402_300_799;

/** A day, which v1 takes as a UNIX time, as v2 takes it. */
function dayIn(call: Translated, name: string): string | undefined {
  const text = optional(call, name);
  if (text === undefined) return undefined;
  const seconds = /^\d{1,12}$/.test(text) ? Number(text) : Date.parse(text) / 1000;
  if (seconds >= 0 && seconds <= LAST_SECOND) return new Date(seconds * 1000).toISOString().slice(0, 10);
  throw new V1Error('ParameterInvalid', `${name} must be a UNIX time in seconds, or a day as 2030-01-31.`);
}
