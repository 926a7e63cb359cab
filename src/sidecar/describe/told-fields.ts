import * as z from 'zod';
import { batchAnswer, batchResult, batchSummary } from '../../api/batch';
import { listAnswer } from '../listing/list-handler';

type Descriptions<Shape extends z.ZodRawShape> = { readonly [name in keyof Shape]: string };

/** Says what the fields of an answer are. Told here, so that the start of the service does without it. */
function tell<Shape extends z.ZodRawShape>(object: z.ZodObject<Shape>, fields: Descriptions<Shape>): void {
  for (const [name, description] of Object.entries<string>(fields)) {
    const field = object.shape[name];
    if (field) z.globalRegistry.add(field, { description });
  }
}

const PROBLEM = { code: 'For programs.', description: 'For a person.' };
const ETAG = 'The entity tag of the file, quotes included.';

/** Tells of the answers whose schemas stand beside the code that makes them. */
export function tellFields(): void {
  tell(listAnswer, {
    keyfiles:
      'The key files of this page, in no order. It may hold fewer than `limit`, or none, and yet not be the last.',
    cursor: 'What the next page is asked for with; `null` after the last one.',
  });
  tell(listAnswer.shape.keyfiles.element, {
    streamid: 'The stream id.',
    modified: 'When the file was written.',
    size: 'In bytes.',
    parts: 'What the file has lines for: `cenc`, `widevine`, `playready`, `fairplay`, `cmaf`.',
    key_id: 'The CENC key id as a UUID.',
    content_id: 'The content id that its Widevine data or its FairPlay address names.',
    faults:
      'What is wrong with the file, up to 20; the codes are those of a check, and `unreadable`, `too_large`, `not_utf8`.',
  });
  tell(listAnswer.shape.keyfiles.element.shape.faults.element, {
    severity: '`error`: viewers see a black screen. `warning`: it may be meant so.',
    code: 'For programs.',
    description: 'For a person.',
  });
  tell(batchAnswer, {
    results: 'One for each stream, in the order of the request, groups after streams.',
    summary: 'How many there are of each result.',
  });
  tell(batchResult, {
    streamid: 'The stream id; `null` for an entry that names none, or a group that can not be read.',
    result: 'What became of the file; of a dry run, what would.',
    etag: ETAG,
    lines: 'Of a dry run: the lines that would not stay as they are, key material as `********`.',
    warnings: 'What is odd about the keys and yet written.',
    errors:
      'Why it failed: the errors of a single request, and `duplicate_stream`, `duplicate_content_id`, `duplicate_quality`, `stopping`.',
  });
  tell(batchResult.shape.lines.unwrap().element, {
    name: 'The name of the line.',
    value: 'Its value.',
    change: 'What happens to the line.',
    former: 'The present value of a line that would change.',
  });
  tell(batchResult.shape.errors.unwrap().element, PROBLEM);
  tell(batchResult.shape.warnings.unwrap().element, PROBLEM);
  tell(batchSummary, {
    created: 'New files.',
    changed: 'Files that are others now.',
    unchanged: 'Files that were so already; they are not written.',
    failed: 'Streams whose files are as they were.',
  });
}
