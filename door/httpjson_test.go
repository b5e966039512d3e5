package door

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// idleSwitch is a switch without connections, whose ports another process has.
type idleSwitch struct {
	Switch
	PortOpener
}

func (idleSwitch) Connections() Connections { return nil }

// TestPathMTURefusesNoAddress: the answer is about the address alone if the switch opens ports.
func TestPathMTURefusesNoAddress(t *testing.T) {
	sw := idleSwitch{}
	for _, open := range []PortOpener{sw.PortOpener, sw} {
		w := httptest.NewRecorder()
		NewServer(sw, open, nil, "").Handler().ServeHTTP(w, httptest.NewRequest("GET", "/v1/tunnel/path-mtu?node=x", nil))
		if got := w.Body.String(); w.Code != 400 || !strings.Contains(got, "ParseAddr") || strings.Contains(got, "opens no ports") {
			t.Errorf("status %d: %s", w.Code, got)
		}
	}
}
