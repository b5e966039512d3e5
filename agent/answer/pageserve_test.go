package answer

import (
	"context"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/internal/browsertest"
)

// TestPageOfSeveral: the page of several agents names their Nodes, watches at all of
// them, and tells why it cannot.
func TestPageOfSeveral(t *testing.T) {
	a, b := newWatchedNode(t, "node-a"), newWatchedNode(t, "node-b")
	gone := api.NewClient("/no/such.sock")
	for _, c := range []struct {
		agents             []*api.Client
		shown, ask, answer string
		status             int
	}{
		{[]*api.Client{a.client, b.client}, `["node-a","node-b"]`, `{"filter": "tcp and"}`, "filter", 400},
		{[]*api.Client{a.client, b.client}, `["node-a","node-b"]`, `{"nonsense": 1}`, "nonsense", 400},
		{[]*api.Client{a.client, b.client}, `["node-a","node-b"]`, `{"forNS": 1000000}`, `"counts"`, 200},
		{[]*api.Client{a.client, gone}, `["node-a","/no/such.sock"]`, `{}`, "no agent answers at /no/such.sock", 400},
	} {
		ctx, stop := context.WithCancel(t.Context())
		invitations, ended := make(chan string, 2), make(chan error, 1)
		s := PageServer{Agents: c.agents, Address: "127.0.0.1:0", Invite: func(url string) error { invitations <- url; return nil }}
		go func() { ended <- s.Run(ctx) }()
		invitation, err := url.Parse(<-invitations)
		if err != nil {
			t.Fatal(err)
		}
		v, base := browsertest.Visitor(t), "http://"+invitation.Host
		browsertest.Fetch(t, v, invitation.String())
		if _, text := browsertest.Fetch(t, v, base+"/shown"); strings.TrimSpace(text) != c.shown {
			t.Errorf("the page shows %s, want %s", text, c.shown)
		}
		resp, err := v.Post(base+"/api/trace/live?node=node-a", "application/json", strings.NewReader(c.ask))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != c.status || !strings.Contains(string(text), c.answer) {
			t.Errorf("%s: %d %s; want %d with %q", c.ask, resp.StatusCode, text, c.status, c.answer)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
