package agent

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/antrail/antrail/agent/api"
	"github.com/antrail/antrail/agent/pipeline"
	"github.com/antrail/antrail/door"
	"github.com/antrail/antrail/packet"
	"github.com/antrail/antrail/packet/packettest"
	"github.com/antrail/antrail/ports/memory"
	"github.com/antrail/antrail/switchd/local"
)

// TestDropLines: a kind of loss has a line when it begins and one a minute after,
// however many packets are dropped, and other kinds have their own.
func TestDropLines(t *testing.T) {
	var log bytes.Buffer
	teller := dropLogger{log: slog.New(slog.NewTextHandler(&log, nil)), told: map[dropKind]*dropsLogged{}}
	now := time.Now()
	lose := func(port uint32, after time.Duration) {
		p := &api.DroppedPacket{Reason: "entry", Table: "SpoofGuard"}
		p.Port.No = port
		teller.logDrop(p, now.Add(after))
	}
	for i := range 100 {
		lose(1, time.Duration(i)*time.Millisecond)
	}
	lose(2, time.Second)
	lose(1, time.Minute)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 3 || !strings.Contains(lines[2], "more=99") || !strings.Contains(lines[0], "table=SpoofGuard") {
		t.Errorf("%d lines:\n%s", len(lines), log.String())
	}
	for i := range uint32(3 * dropKinds) {
		lose(i, time.Minute)
	}
	if len(teller.told) > dropKinds {
		t.Errorf("%d kinds are known at once", len(teller.told))
	}
}

// TestRequestsToAQuietSwitch: while no port comes, goes or drops a frame, a fetch is one
// request. All requests use one connection, also after an answer in chunks.
func TestRequestsToAQuietSwitch(t *testing.T) {
	sw, err := local.Open(local.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer sw.Close()
	var last *memory.Port
	add := func(no uint32) {
		last = memory.New(fmt.Sprint("pod-", no), memory.Options{})
		if err := sw.AddPort(no, last); err != nil {
			t.Fatal(err)
		}
	}
	for no := range uint32(100) {
		add(no + 1)
	}
	requests, dialled := map[string]int{}, 0
	h := door.NewServer(sw, nil, sw.Clock, "test").Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests[r.URL.Path]++
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		dialled++
		return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
	}
	p, err := pipeline.NewPipeline(pipeline.Options{Remote: door.NewClient("test", &http.Transport{DialContext: dial})})
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(what string, want map[string]int) (dropped uint64) {
		t.Helper()
		clear(requests)
		for range 10 {
			all, _, _ := p.Drops.Since(0, func(*api.DroppedPacket) bool { return true })
			dropped = 0
			for i := range all {
				dropped += all[i].Packets
			}
		}
		delete(requests, "/v1/switch") // once a second at most
		if !maps.Equal(requests, want) {
			t.Errorf("%s: ten fetches made %v, want %v", what, requests, want)
		}
		return dropped
	}
	fetch("first", map[string]int{"/v1/drops": 10, "/v1/ports": 1})
	fetch("quiet", map[string]int{"/v1/drops": 10})
	add(200)
	fetch("another port", map[string]int{"/v1/drops": 10, "/v1/ports": 1})
	last.Close()
	f := packet.NewFrame(make([]byte, 2048), nil)
	f.SetBytes(packettest.UDP4(packettest.Options{}))
	last.Transmit([]*packet.Frame{f})
	if n := fetch("a drop", map[string]int{"/v1/drops": 10, "/v1/ports": 1, "/v1/ports/200/sample": 1}); n != 1 {
		t.Errorf("%d packets were dropped, want 1", n)
	}
	if dialled != 1 {
		t.Errorf("%d connections, want 1", dialled)
	}
}
