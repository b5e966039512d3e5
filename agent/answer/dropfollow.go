package answer

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
)

// Dropped packets over the API, as they come (GET /drops/follow), one JSON object a line:
// a LostPacket, a note as {"note":"…"}, or why the
// switch does not answer as {"error":"…"}.

const (
	// followEvery is how often a follower gets new dropped packets.
	followEvery = 200 * time.Millisecond
	// notesEvery is how often links and Nodes are looked at for a follower.
	notesEvery = time.Second
)

// dropFollower is a client that gets the dropped packets as they come.
type dropFollower struct {
	p       *Answers
	q       api.DropQuery
	to      *json.Encoder
	flush   func() error
	severed []pipeline.Severed // as of the last look
	looked  time.Time
}

// answerDropsFollow sends the last dropped packets and those to come, until the client goes
// away. It also sends a note when a link or a Node becomes silent, and when it answers again.
func (p *Answers) answerDropsFollow(w http.ResponseWriter, r *http.Request) {
	failed := p.BeginAsking()
	q, answer, err := p.Drops.First(r.URL.Query())
	if err != nil || failed() != nil {
		refuse(w, failed, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	f := dropFollower{p: p, q: q, to: json.NewEncoder(w), flush: http.NewResponseController(w).Flush, severed: p.Severed(q.Pod), looked: time.Now()}
	f.to.SetEscapeHTML(false)
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for f.writePackets(answer) == nil {
		select {
		case now := <-tick.C:
			failed := p.BeginAsking()
			answer = p.Drops.Query(&f.q)
			answer.Note = f.look(now)
			if err := failed(); err != nil {
				_ = f.to.Encode(api.FollowedLine{Error: err.Error()}) // the stream ends either way
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// writePackets writes an answer's note and packets. The error is that nobody reads any more.
func (f *dropFollower) writePackets(answer *api.DroppedPackets) error {
	if answer.Note != "" {
		if err := f.to.Encode(api.FollowedLine{Note: answer.Note}); err != nil {
			return err
		}
	}
	for i := range answer.Packets {
		if err := f.to.Encode(api.FollowedLine{DroppedPacket: &answer.Packets[i]}); err != nil {
			return err
		}
	}
	f.q.Since, f.q.Last = answer.Next, 0
	return f.flush()
}

// look is what to note of links and Nodes since the last look.
func (f *dropFollower) look(now time.Time) string {
	if now.Sub(f.looked) < notesEvery {
		return ""
	}
	before := f.severed
	f.severed, f.looked = f.p.Severed(f.q.Pod), now
	return f.p.SeveredNews(before, f.severed)
}

// The last dropped packets over the API, as they are: GET /drops/last.

func (p *Answers) answerDrops(w http.ResponseWriter, r *http.Request) {
	_, answer, err := p.Drops.First(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if r.URL.Query().Get("format") == "json" {
		WriteJSON(w, answer, nil)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	api.WriteDrops(w, answer.Packets)
}
