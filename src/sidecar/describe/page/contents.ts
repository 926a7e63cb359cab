import { type Html, html } from '../../../http/html';
import type { Method, OpenApiDocument } from '../document';
import { methodBadge, type Placed } from './operation-section';

/** The operations of one tag, under its name. */
export interface Group {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly operations: readonly Placed[];
}

export function groupsOf({ paths, tags }: OpenApiDocument): Group[] {
  const placed = Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method): Placed[] => {
      const operation = item[method];
      return operation ? [{ path, method, operation }] : [];
    }),
  );
  return tags.map(({ name, description }) => ({
    id: `group-${name.toLowerCase().replaceAll(/[^a-z]+/g, '-')}`,
    name,
    description,
    operations: placed.filter(({ operation }) => operation.tags.includes(name)),
  }));
}

const METHODS: readonly Method[] = ['get', 'post', 'delete'];

/** The list of what is on the page. */
export function contents(groups: readonly Group[]): Html {
  return html`<ul><li><a href="#start">Overview</a></li></ul>
${groups.map(
  ({ id, name, operations }) => html`<p><a href="#${id}">${name}</a></p>
<ul>${operations.map(
    ({ method, operation: { operationId, summary } }) =>
      html`<li><a href="#${operationId}">${methodBadge(method)} <span>${summary}</span></a></li>`,
  )}</ul>`,
)}
<p>More</p>
<ul>
<li><a href="#errors">Errors of any request</a></li>
<li><a href="openapi.json">openapi.json</a></li>
</ul>`;
}
