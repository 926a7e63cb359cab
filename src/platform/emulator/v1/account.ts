import { changeTags } from '../resources/tags';
import { usageOf } from '../resources/usage';
import { asJson, type Handler, notFound, optional, required } from './translate';

/** Tags are in v2 what media have, so what is done to a tag is done to all media of the site. */
export const TAGS: Readonly<Record<'delete' | 'update', Handler>> = {
  delete(call) {
    const name = required(call, 'name');
    if (changeTags(call.context, 'remove_tag', call.siteId, call.parts.body) > 0) return {};
    throw notFound('name', name);
  },

  update(call) {
    const name = required(call, 'name');
    const newName = required(call, 'new_name');
    const count = changeTags(call.context, 'rename_tag', call.siteId, call.parts.body);
    if (count > 0 || name === newName) return {};
    throw notFound('name', name);
  },
};

export const USAGE: Readonly<Record<'show', Handler>> = {
  show(call) {
    const { context, siteId, parts } = call;
    const account = optional(call, 'account_key');
    if (account !== undefined && account !== siteId) throw notFound('account_key', account);
    const { start_date, end_date, results } = usageOf(context, [siteId], parts.body);
    return { account: { key: siteId }, start_date, end_date, usage: results.map(asJson) };
  },
};
