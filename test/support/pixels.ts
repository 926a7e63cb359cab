import type { Page } from 'playwright-core';

/** Red, green and blue, from 0 to 255. */
export type Colour = readonly [number, number, number];

/**
 * The colours that a person sees at places of an element, which are parts of its width and height. Of a protected
 * picture no canvas of the page has them: they are read from a screenshot.
 */
export async function coloursOf(
  page: Page,
  selector: string,
  places: readonly (readonly [x: number, y: number])[],
): Promise<Colour[]> {
  const png = (await page.locator(selector).screenshot()).toString('base64');
  const reader = await page.context().newPage();
  try {
    return await reader.evaluate(
      `(async (png, places) => {
        const image = new Image();
        image.src = 'data:image/png;base64,' + png;
        await image.decode();
        const canvas = new OffscreenCanvas(image.width, image.height);
        const context = canvas.getContext('2d');
        context.drawImage(image, 0, 0);
        return places.map(([x, y]) => {
          const at = context.getImageData(Math.floor(x * image.width), Math.floor(y * image.height), 1, 1);
          return [...at.data.subarray(0, 3)];
        });
      })(${JSON.stringify(png)}, ${JSON.stringify(places)})`,
    );
  } finally {
    await reader.close();
  }
}

/** The middle of the seven bars of the test clip, and what colour each has. */
export const BARS: readonly { readonly place: readonly [number, number]; readonly colour: Colour }[] = [
  [191, 191, 191],
  [191, 191, 0],
  [0, 191, 191],
  [0, 191, 0],
  [191, 0, 191],
  [191, 0, 0],
  [0, 0, 191],
].map((colour, at) => ({
  place: [(80 + at * 80) / 640, 312 / 360] as const,
  colour: colour as unknown as Colour,
}));

/** Whether an element shows the bars of the test clip. */
export async function showsBars(page: Page, selector: string): Promise<boolean> {
  const seen = await coloursOf(
    page,
    selector,
    BARS.map(({ place }) => place),
  );
  return BARS.every(({ colour }, at) =>
    colour.every((value, channel) => Math.abs(value - (seen[at]?.[channel] ?? -99)) < 24),
  );
}
