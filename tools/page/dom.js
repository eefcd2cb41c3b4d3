// dom.js - makes nodes. Text of sessions enters the document here only, as text.

// el('div', { class: 'a', onclick: f, title: t }, child, ...)
function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') {
      node.addEventListener(key.slice(2), value);
    } else {
      node.setAttribute(key, value === true ? '' : value);
    }
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children) {
    if (Array.isArray(child)) {
      append(node, child);
    } else if (child !== null && child !== undefined && child !== false) {
      node.append(child);
    }
  }
}

function svg(name, attributes, ...children) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  append(node, children);
  return node;
}

function button(text, title, action, className) {
  return el('button', {
    type: 'button', class: className || 'plain', title,
    'aria-label': text.length < 3 ? title : null,
    onclick: (event) => {
      event.stopPropagation();
      action(event);
    },
  }, text);
}

function replace(node, ...children) {
  node.replaceChildren();
  append(node, children);
}

// Copies a text and says so on the button.
function copyButton(text, title, label) {
  const node = button(label || 'copy', title, async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      copyBySelection(text);
    }
    const before = node.textContent;
    node.textContent = '\u2713';
    setTimeout(() => { node.textContent = before; }, 900);
  }, 'plain copy');
  return node;
}

function copyBySelection(text) {
  const area = el('textarea', { class: 'offscreen' });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

// Shows a sentence for a moment, also to those who do not see it.
let noticeTimer = 0;
function notice(text) {
  let node = document.getElementById('notice');
  if (!node) {
    node = el('div', { id: 'notice', role: 'status' });
    document.body.append(node);
  }
  node.textContent = plain(text);
  node.classList.add('shown');
  clearTimeout(noticeTimer);
  noticeTimer = setTimeout(() => node.classList.remove('shown'), 2600);
}

// Whether a link may be followed: http and https only.
function safeUrl(text) {
  try {
    const url = new URL(text);
    return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : null;
  } catch {
    return null;
  }
}
