import type { Express, Request, Response } from 'express';
import { onlyMethods } from '../../../../http/app';
import { type Content, html } from '../../../../http/html';
import type { EmulatorContext } from '../../context';
import { countTags, removeTag, renameTag } from '../../library/tags';
import { actionSchema, readActionFields } from '../../resources/body';
import { SITE_ACTIONS } from '../../resources/site-table';
import { confirmedAction, hiddenFields, live, openedForm, table } from '../elements';
import { FormBody, problemList, readForm } from '../forms';
import { layout } from '../layout';
import { nounFor, type PageQuery, type Searchable, search } from '../search';
import { attempt } from './resource-form';
import { inputsOf } from './resource-inputs';

const PATH = '/dashboard/tags';

/** The page of the tags that media have. */
export function mountTagsPage(app: Express, context: EmulatorContext): void {
  app
    .route(PATH)
    .get(({ query }, response) => void response.send(tagsPage(context, query, [])))
    .all(onlyMethods('GET'));

  for (const [name, done, change] of [
    ['rename_tag', 'tag-renamed', renameTag],
    ['remove_tag', 'tag-removed', removeTag],
  ] as const) {
    const { body } = SITE_ACTIONS[name];
    const schema = actionSchema(body);
    app
      .route(`${PATH}/${name}`)
      .post(readForm, async (request: Request, response: Response) => {
        const sent = new FormBody(request.body);
        const given = Object.fromEntries(
          Object.keys(body).flatMap((field) => (sent.has(field) ? [[field, sent.text(field).trim()]] : [])),
        );
        const siteId = sent.text('site');
        const known = context.seeds.siteIds.includes(siteId) ? [] : ['The account has no such site.'];
        const problems = await attempt(known, () =>
          change(context, siteId, readActionFields(schema, given, 'invalid_body')),
        );
        if (problems.length > 0) response.status(400).send(tagsPage(context, {}, problems));
        else response.redirect(303, `${PATH}?done=${done}`);
      })
      .all(onlyMethods('POST'));
  }
}

interface Tag {
  readonly name: string;
  readonly siteId: string;
  readonly count: number;
}

const TAGS: Searchable<Tag> = {
  path: PATH,
  noun: { one: 'tag', many: 'tags' },
  hint: 'tag',
  texts: ({ name, siteId }) => [name, siteId],
  filters: [],
  empty: html`<p>No media has a tag yet. Give it some on <a href="/dashboard/media">its page</a>.</p>`,
};

function tagsPage(context: EmulatorContext, query: PageQuery, problems: readonly string[]): string {
  const { siteIds } = context.seeds;
  const tags = siteIds.flatMap((siteId) =>
    [...countTags(context, siteId)].map(([name, count]) => ({ name, siteId, count })),
  );
  const byName = tags.toSorted((a, b) => (a.name < b.name ? 1 : -1));
  const found = search(byName, query, TAGS);
  const showSite = siteIds.length > 1;
  const list = table({
    caption: 'Tags',
    columns: ['Tag', 'Media', 'Actions'],
    rows: found.items.map((tag, place) => rowOf(tag, place, showSite)),
    empty: found.none,
  });
  return layout({
    title: 'Tags',
    section: PATH,
    intro: 'The tags of all media. Renaming and removing one changes every media that has it.',
    content: html`${problemList(problems)}${found.form}${live('tags', html`${found.summary}${list}${found.links}`)}`,
    done: query.done,
  });
}

const { new_tag } = SITE_ACTIONS.rename_tag.body;

function rowOf({ name, siteId, count }: Tag, place: number, showSite: boolean): Content[] {
  const rename = html`<form method="post" action="${PATH}/rename_tag" class="form">
    ${hiddenFields({ site: siteId, old_tag: name })}<div class="fields">${inputsOf({ new_tag }, new FormBody({ new_tag: name }), `tag-${place}`)}</div>
    <p><button class="button button-small button-main">Rename<span class="unseen"> ${name}</span></button></p></form>`;
  const media = `${count} ${nounFor(count, { one: 'media', many: 'media' })}`;
  return [
    html`<span class="name" dir="auto">${name}</span>${showSite && html`<span class="sub">site <code>${siteId}</code></span>`}`,
    html`<a href="/dashboard/media?${new URLSearchParams({ q: name }).toString()}">${media}</a>`,
    html`<div class="actions">${openedForm(`rename-${siteId}-${name}`, 'Rename', name, rename)}
    ${confirmedAction(
      `${PATH}/remove_tag`,
      'Remove',
      name,
      `${media} ${count === 1 ? 'loses' : 'lose'} this tag.`,
      {
        id: `remove-${siteId}-${name}`,
        fields: hiddenFields({ site: siteId, tag: name }),
      },
    )}</div>`,
  ];
}
