import type { Request, Response } from 'express';
import type { Media } from '../../library/media';
import type { View } from '../../resources/resource';
import { FormBody } from '../forms';

/** One of the forms of a media's page that was not accepted. */
interface Refused {
  readonly form: string;
  readonly sent: FormBody;
  readonly problems: readonly string[];
}

/** What the page of a media is shown for. */
export interface MediaView {
  readonly view: View;
  readonly refused?: Refused;
  readonly done?: unknown;
}

/** Answers with the page of a media, which says what is wrong with one of its forms. */
export type ShowMedia = (request: Request, response: Response, media: Media, refused: Refused) => void;

/** What a form of the page is filled in with: what was sent when it was refused. */
export function stateOf(
  { refused }: MediaView,
  form: string,
  otherwise: FormBody = new FormBody(),
): { readonly sent: FormBody; readonly problems: readonly string[] } {
  return refused?.form === form ? refused : { sent: otherwise, problems: [] };
}
