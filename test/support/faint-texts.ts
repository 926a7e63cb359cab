/**
 * A program for a page, since its types are not those of the tests: the elements whose text has a contrast below 4.5 to 1
 * (WCAG 2.2, level AA).
 */
export const FAINT_TEXTS = `(() => {
  // A mixed color is told in parts of 1.
  const channels = (color) => color.match(/[\\d.]+/g).map((value) => value * (color.startsWith('color(') ? 255 : 1));
  const luminance = (color) => {
    const [red, green, blue] = channels(color).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const ground = (element) => {
    if (!element) return matchMedia('(prefers-color-scheme: dark)').matches ? 'rgb(18, 18, 18)' : 'rgb(255, 255, 255)';
    const { backgroundColor } = getComputedStyle(element);
    return channels(backgroundColor)[3] === 0 ? ground(element.parentElement) : backgroundColor;
  };
  const faint = new Set();
  for (const element of document.querySelectorAll('body *')) {
    const says = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim() !== '');
    if (!says || !element.checkVisibility()) continue;
    const tones = [luminance(getComputedStyle(element).color), luminance(ground(element))];
    const contrast = (Math.max(...tones) + 0.05) / (Math.min(...tones) + 0.05);
    if (contrast < 4.5) faint.add(element.tagName + '.' + element.className + ' ' + contrast.toFixed(1));
  }
  return [...faint];
})()`;
