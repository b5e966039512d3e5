package answer

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
)

// Dropped packets over the API, as they come (GET /drops/follow). Each line is a JSON object:
// an api.DroppedPacket, {"note":"…"}, or {"error":"…"} if the switch does not answer.

const (
	// followEvery is how often a follower gets new dropped packets.
	followEvery = 200 * time.Millisecond
	// notesEvery is how often links and Nodes are checked for a follower.
	notesEvery = time.Second
)

// dropFollower is a client that receives dropped packets as they come.
type dropFollower struct {
	p       *Answers
	q       api.DropQuery
	to      *json.Encoder
	flush   func() error
	severed []pipeline.Severed // at the last check
	looked  time.Time
}

// answerDropsFollow sends the last dropped packets and those to come, until the client
// disconnects. It adds a note when a link or a Node becomes silent, and when it answers again.
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
			answer.Note = f.severedNews(now)
			if err := failed(); err != nil {
				_ = f.to.Encode(api.FollowedLine{Error: err.Error()}) // an error ends the stream, too
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// writePackets writes an answer's note and packets. The error says that the client has gone.
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

// severedNews reports links and Nodes that became silent or answer again since the last check.
func (f *dropFollower) severedNews(now time.Time) string {
	if now.Sub(f.looked) < notesEvery {
		return ""
	}
	before := f.severed
	f.severed, f.looked = f.p.Severed(f.q.Pod), now
	return f.p.SeveredNews(before, f.severed)
}

// answerDrops answers GET /drops/last: the last dropped packets.

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
