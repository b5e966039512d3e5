package answer

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/door"
)

// A switch without an agent can be asked as an agent is: the API of a pipeline runs in the
// process that asks, over the switch's door. There are no objects behind its entries, as
// behind those of flow files.

// connectTimeout is how long whoever listens at a socket may take to say what it is.
const connectTimeout = 5 * time.Second

// Connect is a client of whoever answers at a socket, an agent or a switch. If nobody does,
// it is a client of an agent, whose first question fails. The error is that of a switch
// whose door has a version that this program does not speak.
func Connect(ctx context.Context, socket string) (*api.Client, error) {
	c := api.NewClient(socket)
	if !c.IsSwitch(ctx, connectTimeout) {
		return c, nil
	}
	d := door.Dial(socket)
	info, err := d.Info(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	clock := func() int64 { return info.ClockNS + int64(time.Since(start)) }
	loaded, err := pipeline.NewPipeline(pipeline.Options{Remote: d, Clock: clock})
	if err != nil {
		return nil, err
	}
	p := New(loaded)
	mux := p.Routes(Registry(p))
	mux.HandleFunc("POST /trace/live", func(w http.ResponseWriter, r *http.Request) { p.AnswerLive(w, r, "") })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprintf("a switch answers at %s, and only an agent (antrail agent) answers %s", socket, r.URL.Path), http.StatusNotFound)
	})
	return api.NewClientBy(socket, inProcess{mux}), nil
}
