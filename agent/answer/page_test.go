package answer

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/control"
	"github.com/antrail/antrail/internal/browsertest"
	"github.com/antrail/antrail/packet"
)

// TestPageElsewhere serves the page of an agent at the other end of a socket, live
// traces too.
func TestPageElsewhere(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	ctx, stop := context.WithCancel(t.Context())
	invitations, ended := make(chan string, 3), make(chan error, 1)
	go func() {
		s := PageServer{Agents: []*api.Client{n.client}, Address: "127.0.0.1:0", Invite: func(url string) error { invitations <- url; return nil }}
		ended <- s.Run(ctx)
	}()
	invitation, err := url.Parse(<-invitations)
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + invitation.Host
	v := browsertest.Visitor(t)
	browsertest.Fetch(t, v, invitation.String())
	if code, text := browsertest.Fetch(t, v, base+"/api/object?what=Pod/default/client-a"); code != 200 || !strings.Contains(text, "nodeName: node-a") {
		t.Errorf("%d %s", code, text)
	}
	if code, text := browsertest.Fetch(t, v, base+"/api/flows?table=nothing"); code != 400 || !strings.Contains(text, `there is no table "nothing"`) {
		t.Errorf("%d %s", code, text)
	}
	for _, path := range []string{"/api/trace", "/api/trace/live"} {
		resp, err := v.Post(base+path, "application/json", strings.NewReader(`{"flow": "`+strings.Repeat("x", 64<<10)+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("%s with a large body: %d", path, resp.StatusCode)
		}
	}
	resp, err := v.Post(base+"/api/trace/live", "application/json", strings.NewReader(`{"count": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := json.NewDecoder(resp.Body)
	var l api.LiveLine
	if err := lines.Decode(&l); err != nil || l.Armed == nil {
		t.Fatalf("%+v, %v", l, err)
	}
	n.send(t, nodeClient, syn("10.10.0.24", 1000), packet.Tunnel{}, nodeWeb)
	if err := lines.Decode(&l); err != nil || l.Walk == nil {
		t.Errorf("%+v, %v", l, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, address := range []string{"0.0.0.0:0", "192.168.0.1:80", "localhost:80", "8080"} {
		if err := (&PageServer{Address: address}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), "not a loopback IP address") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestCounters has what passed, by table and port, and knows when entries change.
func TestCounters(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	before := n.counters()
	n.send(t, nodeClient, syn("10.10.0.24", 1000), packet.Tunnel{}, nodeWeb)
	after := n.counters()
	if after.AtNS <= before.AtNS || after.Generation != before.Generation || after.Connections.Now != 1 || after.Connections.Max == 0 {
		t.Errorf("%v to %v, generation %d, connections %+v", before.AtNS, after.AtNS, after.Generation, after.Connections)
	}
	for i := range after.Pipeline.Tables {
		if x := &after.Pipeline.Tables[i]; x.Name == "SpoofGuard" && x.Packets != before.Pipeline.Tables[i].Packets+1 {
			t.Errorf("SpoofGuard took %d packets", x.Packets)
		}
	}
	var got api.Counters
	if err := n.client.JSON(t.Context(), "/counters", nil, &got); err != nil || got.Pipeline == nil || len(got.Ports) != len(after.Ports) {
		t.Errorf("%d ports, %v", len(got.Ports), err)
	}
}

// TestObjectText shows objects of every kind that the example has, and tells what is
// none.
func TestObjectText(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	for what, want := range map[string]string{
		"Pod/default/client-a": "ips:\n- 10.10.0.26\n", "pod/default/client-a": "labels:\n  app: client\n",
		"NodeConfig/node-a": "mac: ba:5e:d1:55:aa:c0\n", "Node/node-b": "podCIDRs:\n- 10.10.1.0/24\n",
		"Service/default/sample-clusterip": "protocol: TCP\n", "ClusterNetworkPolicy/web-app-db-network-policy": "action: Allow\n",
	} {
		b, err := n.client.Get(t.Context(), "/object", url.Values{"what": {what}})
		if err != nil || !strings.Contains(string(b), want) || !strings.HasPrefix(string(b), "# ") {
			t.Errorf("%s: %v\n%s", what, err, b)
		}
	}
	for what, want := range map[string]string{
		"": "is neither KIND/NAME", "Pod/default/nobody": "there is no Pod/default/nobody", "Thing/x": "there is no kind", "Pod/a/b/c": "an object is",
	} {
		if _, err := n.client.Get(t.Context(), "/object", url.Values{"what": {what}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", what, err, want)
		}
	}
}

// TestNodes has all Nodes with their pods, and says which one this is.
func TestNodes(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	var rows []control.NodeRow
	if err := n.client.JSON(t.Context(), "/nodes", nil, &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || !rows[0].Here || rows[1].Here || rows[1].Name != "node-b" || len(rows[0].Pods) != 3 || rows[0].Pods[0].Name != "default/client-a" {
		t.Errorf("%+v", rows)
	}
	text, err := n.client.Get(t.Context(), "/nodes", nil)
	if err != nil || !bytes.Contains(text, []byte("node-b  192.168.77.103")) {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestLimit: as many entries and connections as were asked for.
func TestLimit(t *testing.T) {
	n := newWatchedNode(t, "node-a")
	for i := range 5 {
		n.send(t, nodeClient, syn("10.10.0.24", uint16(1000+i)), packet.Tunnel{}, nodeWeb)
	}
	var flows []api.Flow
	var connections []api.Connection
	limit := url.Values{"limit": {"3"}}
	if err := n.client.JSON(t.Context(), "/flows", limit, &flows); err != nil || len(flows) != 3 {
		t.Errorf("%d entries, %v", len(flows), err)
	}
	if err := n.client.JSON(t.Context(), "/conntrack", limit, &connections); err != nil || len(connections) != 3 {
		t.Errorf("%d connections, %v", len(connections), err)
	}
	if text, err := n.client.Get(t.Context(), "/conntrack", limit); err != nil || bytes.Count(text, []byte("\n")) != 3 {
		t.Errorf("%v\n%s", err, text)
	}
	for _, bad := range []string{"0", "-1", "x"} {
		if _, err := n.client.Get(t.Context(), "/flows", url.Values{"limit": {bad}}); err == nil || !strings.Contains(err.Error(), "not a number above 0") {
			t.Errorf("limit=%s: %v", bad, err)
		}
	}
}
