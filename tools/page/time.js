// time.js - times for people.

const clock = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const day = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric' });
const dayOfYear = new Intl.DateTimeFormat(undefined,
  { year: 'numeric', month: 'short', day: 'numeric' });
const complete = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

function ageText(ms) {
  if (!ms) return '';
  const seconds = (Date.now() - ms) / 1000;
  if (seconds < 60) return 'now';
  if (seconds < 3600) return Math.floor(seconds / 60) + ' min';
  if (seconds < 86400) return Math.floor(seconds / 3600) + ' h';
  if (seconds < 7 * 86400) return Math.floor(seconds / 86400) + ' d';
  const sameYear = new Date(ms).getFullYear() === new Date().getFullYear();
  return (sameYear ? day : dayOfYear).format(ms);
}

function clockText(ms) {
  return ms ? clock.format(ms) : '';
}

function timeText(ms) {
  return ms ? complete.format(ms) : '';
}

function isSameDay(a, b) {
  return new Date(a).toDateString() === new Date(b).toDateString();
}

function dayText(ms) {
  return dayOfYear.format(ms);
}

function durationText(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return seconds + ' s';
  if (seconds < 3600) return Math.round(seconds / 60) + ' min';
  if (seconds < 86400) {
    return Math.floor(seconds / 3600) + ' h ' + Math.round(seconds % 3600 / 60) + ' min';
  }
  return Math.round(seconds / 86400) + ' d';
}
