// @ts-check
// The line to the server: requests, and news for as long as the page is open. A line that breaks is tried again;
// the game is kept by the server, and the first news after that is how it stands.

class Line {
  /** @param {(state: State) => void} news @param {(lost: boolean) => void} lost */
  constructor(news, lost) {
    this.news = news;
    this.lost = lost;
    this.listen();
  }

  listen() {
    const source = new EventSource("events");
    source.onmessage = (event) => {
      this.lost(false);
      const state = JSON.parse(event.data);
      // Nothing comes after the end.
      if (state.over) source.close();
      this.news(state);
    };
    source.onopen = () => this.lost(false);
    source.onerror = () => {
      this.lost(true);
      // Browsers give up on some errors by themselves.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => this.listen(), 1000);
    };
  }

  /** @param {string} name @param {object} data @returns {Promise<any>} what came back; with a sentence if it was refused */
  async ask(name, data) {
    try {
      const answer = await fetch(name, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(data),
      });
      const found = await answer.json();
      if (found.state) this.news(found.state);
      return found;
    } catch {
      this.lost(true);
      return { sentence: "no connection: nothing has been done" };
    }
  }
}
