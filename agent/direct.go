package agent

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"

	"github.com/antrail/antrail/door"
)

// A switch without an agent can be asked as an agent is: the API of a pipeline runs in the
// process that asks, over the switch's door. There are no objects behind its entries, as
// behind those of flow files.

// connectPatience is how long whoever listens at a socket may take to say what it is.
const connectPatience = 5 * time.Second

// Connect is a client of whoever answers at a socket, an agent or a switch. If nobody does,
// it is a client of an agent, whose first question fails. The error is that of a switch
// whose door has a version that this program does not speak.
func Connect(ctx context.Context, socket string) (*Client, error) {
	c := NewClient(socket)
	if !c.isSwitch(ctx, connectPatience) {
		return c, nil
	}
	d := door.Dial(socket)
	info, err := d.Info(ctx)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	clock := func() int64 { return info.ClockNS + int64(time.Since(start)) }
	p, err := newPipeline(options{remote: d, clock: clock})
	if err != nil {
		return nil, err
	}
	mux := p.routes(registry(p))
	mux.HandleFunc("POST /trace/live", func(w http.ResponseWriter, r *http.Request) { p.answerLive(w, r, "") })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, fmt.Sprintf("a switch answers at %s, and only an agent (antrail agent) answers %s", socket, r.URL.Path), http.StatusNotFound)
	})
	return &Client{socket: socket, http: &http.Client{Transport: inProcess{mux}}}, nil
}

// isSwitch says whether a switch answers. An agent has no such path.
func (c *Client) isSwitch(ctx context.Context, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err := c.Get(ctx, "/v1/switch", nil)
	return err == nil
}

// besidePatience is how long a switch may take whose agent does not answer.
const besidePatience = time.Second

// switchBeside is the socket of a switch that answers beside an agent's socket: the one
// that the agent launched, or one of its directory. "" if there is none.
func switchBeside(socket string) string {
	for _, s := range []string{SwitchSocket(socket), filepath.Join(filepath.Dir(socket), filepath.Base(DefaultSwitch))} {
		if s != socket && NewClient(s).isSwitch(context.Background(), besidePatience) {
			return s
		}
	}
	return ""
}
