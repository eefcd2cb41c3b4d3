// images.test.mjs - the drawings of docs/images in a browser: the demonstration runs
// until all of its lines are visible, and no text leaves its drawing.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { inPage, kit } from './kit.mjs';

const IMAGES = path.join(process.env.AGENTWAL_SOURCE, 'docs', 'images');
const LIMIT = 120000; // the demonstration takes 20 s where nothing else runs

function url(name) {
  return 'file://' + path.join(IMAGES, name);
}

// Returns those of the heights at which a line of text, 13 pixels high, has left a mark.
async function visible(page, heights) {
  const shot = await page.screenshot({ encoding: 'base64' });
  return page.evaluate(async (data, lines) => {
    const image = new Image();
    image.src = 'data:image/png;base64,' + data;
    await image.decode();
    const canvas = document.createElement('canvas');
    canvas.width = image.width;
    canvas.height = image.height;
    const context = canvas.getContext('2d', { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    return lines.filter((y) => {
      const { data: pixels } = context.getImageData(16, y - 10, image.width - 32, 10);
      return pixels.some((value, at) => at % 4 === 1 && value > 80);
    });
  }, shot, heights);
}

test('the demonstration shows all of its lines, as a document that embeds it does', async () => {
  let size, heights;
  const ready = () => document.querySelector('text, img');
  await inPage(url('demo.svg'), { ready }, async (page) => {
    [size, heights] = await page.evaluate(() => [
      document.documentElement.getAttribute('viewBox').split(' ').map(Number).slice(2),
      [...document.querySelectorAll('text')].map((line) => Number(line.getAttribute('y')))]);
  });
  assert.ok(heights.length > 20, `${heights.length} lines`);
  const file = path.join(kit.folder, 'embedded.html');
  writeFileSync(file, `<style>body{margin:0}</style><img src="${url('demo.svg')}"
    width="${size[0]}" height="${size[1]}">`);
  await inPage('file://' + file, { ready, width: Math.ceil(size[0]), height: Math.ceil(size[1]) },
    async (page) => {
      const begin = Date.now();
      let shown = await visible(page, heights);
      assert.ok(shown.length < heights.length, 'it shows all of its lines at once');
      while (shown.length < heights.length && Date.now() < begin + LIMIT) {
        await new Promise((done) => setTimeout(done, 500));
        shown = await visible(page, heights);
      }
      assert.deepEqual(shown, heights, 'the visible lines');
    });
});

for (const name of ['demo.svg', 'overview.svg']) {
  test(`the texts of ${name} are within the drawing`, async () => {
    await inPage(url(name), { ready: () => document.querySelector('text') }, async (page) => {
      const outside = await page.evaluate(() => {
        const [, , width, height] = document.documentElement.getAttribute('viewBox')
          .split(' ').map(Number);
        return [...document.querySelectorAll('text')].filter((text) => {
          const box = text.getBBox();
          return box.x < 0 || box.y < 0 || box.x + box.width > width ||
            box.y + box.height > height;
        }).map((text) => text.textContent);
      });
      assert.deepEqual(outside, []);
    });
  });
}
