package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Lost packets over the API, as they come (GET /drops/follow), one JSON object a line:
// a LostPacket, a note as {"note":"…"}, or why the
// switch does not answer as {"error":"…"}.

const (
	// followEvery is how often a follower is told.
	followEvery = 200 * time.Millisecond
	// notesEvery is how often links and Nodes are looked at for a follower.
	notesEvery = time.Second
)

// followedLine is a line that a follower is told.
type followedLine struct {
	*LostPacket
	Note  string `json:"note,omitempty"`
	Error string `json:"error,omitempty"` // of the switch; no line follows
}

// lostFollower is who is told what was lost, and what will be.
type lostFollower struct {
	p       *pipeline
	q       LostQuery
	to      *json.Encoder
	flush   func() error
	severed []severed // as of the last look
	looked  time.Time
}

// answerLostFollow tells what was lost, and what will be, until whoever asked goes
// away; and which links and Nodes are silent, each when it becomes so, and when it is
// so no more.
func (p *pipeline) answerLostFollow(w http.ResponseWriter, r *http.Request) {
	failed := p.beginAsking()
	q, answer, err := p.lost.first(r.URL.Query())
	if err != nil || failed() != nil {
		refuse(w, failed, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	f := lostFollower{p: p, q: q, to: json.NewEncoder(w), flush: http.NewResponseController(w).Flush, severed: p.severed(q.Pod), looked: time.Now()}
	f.to.SetEscapeHTML(false)
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for f.tell(answer) == nil {
		select {
		case now := <-tick.C:
			failed := p.beginAsking()
			answer = p.lost.ask(&f.q)
			answer.Note = f.look(now)
			if err := failed(); err != nil {
				_ = f.to.Encode(followedLine{Error: err.Error()}) // the stream ends either way
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// tell writes an answer's note and packets. The error is that nobody reads any more.
func (f *lostFollower) tell(answer *LostPackets) error {
	if answer.Note != "" {
		if err := f.to.Encode(followedLine{Note: answer.Note}); err != nil {
			return err
		}
	}
	for i := range answer.Packets {
		if err := f.to.Encode(followedLine{LostPacket: &answer.Packets[i]}); err != nil {
			return err
		}
	}
	f.q.Since, f.q.Last = answer.Next, 0
	return f.flush()
}

// look is what to note of links and Nodes since the last look.
func (f *lostFollower) look(now time.Time) string {
	if now.Sub(f.looked) < notesEvery {
		return ""
	}
	before := f.severed
	f.severed, f.looked = f.p.severed(f.q.Pod), now
	return f.p.severedNews(before, f.severed)
}

// FollowLost hands the last lost packets to tell, and then those that are lost, until
// ctx ends, which is no error, or tell returns one. What is known of links and Nodes
// that are silent goes to note.
func (c *Client) FollowLost(ctx context.Context, q *LostQuery, tell func(*LostPacket) error, note func(string)) error {
	resp, err := c.do(ctx, http.MethodGet, "/drops/follow", q.Values(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for d := json.NewDecoder(resp.Body); ; {
		l := followedLine{LostPacket: new(LostPacket)}
		switch err := d.Decode(&l); {
		case err == io.EOF, err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("answer of %s to /drops/follow: %w", c.socket, err)
		case l.Error != "":
			return errors.New(l.Error)
		case l.Note != "":
			note(l.Note)
			continue
		}
		if err := tell(l.LostPacket); err != nil {
			return err
		}
	}
}
