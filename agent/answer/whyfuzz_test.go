package answer

import (
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/config"
	"github.com/antrail/antrail/agent/pipeline"
)

// FuzzWhy asks about any two ends and any packet from another Node: there is an
// answer with a sentence, or an error that says something.
func FuzzWhy(f *testing.F) {
	for _, q := range []string{"default/web-a:80", "svc:default/sample-clusterip:80", "[fd00:10:10::24]:80", "external", "node:1", "::ffff:10.10.0.24", "a/b:c", "svc:", "192.168.77.102:30004"} {
		f.Add("default/client-a", q, "tcp", []byte{0xaa, 0xbb})
		f.Add(q, "default/web-a:80", "icmp", []byte(nil))
	}
	f.Add("", "", "", syn("10.10.0.24", 1))
	c, err := Offline(pipeline.Manifests{Path: "../../examples/web-app", Node: "node-a"}, config.DefaultTunnel)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, from, to, proto string, frame []byte) {
		for _, r := range []*api.WhyRequest{
			{From: from, To: to, Protocol: proto}, {From: from, To: to, IPv6: true},
			{Carried: &api.Carried{To: "node-a", Frame: frame}},
		} {
			a, err := api.Why(t.Context(), []*api.Client{c}, r)
			switch {
			case err != nil && strings.TrimSpace(err.Error()) == "":
				t.Errorf("%+v: an error without words", r)
			case err == nil && (a.Sentence == "" || len(a.Ways) == 0 || a.Allowed != strings.HasPrefix(a.Sentence, "allowed") || a.Undecided != strings.HasPrefix(a.Sentence, "undecided")):
				t.Errorf("%+v: allowed %v, %q", r, a.Allowed, a.Sentence)
			}
		}
	})
}
