import type { Express } from 'express';
import { html } from '../../../http/html';
import type { EmulatorContext } from '../context';
import { Tag } from '../resources/fields';
import { changeTags, countTags, TAG_ACTIONS } from '../resources/tags';
import { confirmedAction, counted } from './elements';
import { type Asked, formButton, problemList } from './forms';
import { FormBody } from './inputs';
import { mountPage } from './layout';
import { listOf } from './list';
import { requireSite } from './resource-pages';

const PATH = '/dashboard/tags';
const RENAMED = { new_tag: { schema: Tag, says: 'The new name.' } };

type Shown = { readonly name: string; readonly siteId: string; readonly count: number };

export function mountTagsPage(app: Express, context: EmulatorContext): void {
  const { siteIds } = context.seeds;
  const page = (asked: Asked) => {
    const tags = siteIds.flatMap((siteId) =>
      [...countTags(context, siteId)].map(([name, count]): Shown => ({ name, siteId, count })),
    );
    tags.sort((a, b) => (a.name < b.name ? 1 : -1));
    const list = listOf('tags', tags, asked.query, {
      path: PATH,
      noun: { one: 'tag', many: 'tags' },
      caption: 'Tags',
      columns: () => [
        [
          'Tag',
          ({ name, siteId }) =>
            html`<span class="name" dir="auto">${name}</span>${siteIds.length > 1 && html`<span class="sub">site <code>${siteId}</code></span>`}`,
        ],
        [
          'Media',
          ({ name, count }) =>
            html`<a href="/dashboard/media?${String(new URLSearchParams({ q: name }))}">${counted(count, 'media', 'media')}</a>`,
        ],
        ['Actions', (tag) => actionsOf(tag, asked)],
      ],
      hint: 'tag',
      texts: ({ name, siteId }) => [name, siteId],
      empty: html`<p>No media has a tag yet. Add some on <a href="/dashboard/media">its page</a>.</p>`,
    });
    return {
      intro: 'The tags of all media. Renaming and removing one changes every media that has it.',
      content: html`${problemList(asked.refused?.problems ?? [])}${list}`,
    };
  };
  mountPage(app, PATH, page);
  for (const name of ['rename_tag', 'remove_tag'] as const)
    mountPage(app, `${PATH}/${name}`, undefined, {
      form: 'tags',
      change(_request, sent) {
        const { body } = TAG_ACTIONS[name];
        const names = Object.keys(body.shape).filter((field) => sent.has(field));
        const given = Object.fromEntries(names.map((field) => [field, sent.text(field)]));
        // Those that are there may have spaces around them.
        if (given.new_tag !== undefined) given.new_tag = given.new_tag.trim();
        changeTags(context, name, requireSite(context, sent.text('site')), given);
        return `${PATH}?done=tag-${name.replace('_tag', 'd')}`;
      },
      again: page,
    });
}

function actionsOf({ name, siteId, count }: Shown, asked: Asked) {
  // An id that a hint is found by has no spaces.
  const id = `${siteId}-${Buffer.from(name).toString('base64url')}`;
  const rename = {
    id: `rename-${id}`,
    path: `${PATH}/rename_tag`,
    submit: 'Rename',
    hidden: { site: siteId, old_tag: name },
    fields: RENAMED,
    filled: new FormBody({ new_tag: name }),
  };
  const loses = `${counted(count, 'media', 'media')} ${count === 1 ? 'loses' : 'lose'} this tag.`;
  const remove = { id: `remove-${id}`, site: siteId, tag: name };
  return html`<div class="actions">${formButton(asked, 'Rename', name, rename)}${confirmedAction(`${PATH}/remove_tag`, 'Remove', name, loses, remove)}</div>`;
}
