package agent

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/antrail/antrail/internal/nstest"
	"github.com/antrail/antrail/switchd"
)

// probeEnv has this test binary probe the socket that it names, and exit.
const probeEnv = "ANTRAIL_TEST_PROBE"

// TestProbe: what an agent says of itself reaches the probe; as a container's own
// counts only an agent of the same PID namespace.
func TestProbe(t *testing.T) {
	if socket := os.Getenv(probeEnv); socket != "" {
		if err := Probe(t.Context(), socket, "/healthz", true); err != nil {
			t.Fatal(err)
		}
		return
	}
	nstest.New(t) // needs root, as another PID namespace does
	socket := filepath.Join(t.TempDir(), "s")
	if err := Probe(t.Context(), socket, "/healthz", false); err == nil || !strings.Contains(err.Error(), "no agent answers at "+socket) {
		t.Errorf("without an agent: %v", err)
	}
	ln, err := switchd.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	answer := func(why error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			writeConditions(w, r, []condition{{"workers", func() error { return why }}}, nil)
		}
	}
	mux.HandleFunc("GET /healthz", answer(nil))
	mux.HandleFunc("GET /readyz", answer(errors.New("none turns")))
	s := &http.Server{Handler: mux}
	go func() { s.Serve(ln) }()
	defer s.Close()

	for _, own := range []bool{false, true} {
		if err := Probe(t.Context(), socket, "/healthz", own); err != nil {
			t.Errorf("own %v: %v", own, err)
		}
		if err := Probe(t.Context(), socket, "/readyz", own); err == nil || err.Error() != "workers: none turns" {
			t.Errorf("own %v: %v", own, err)
		}
	}
	other := exec.Command(os.Args[0], "-test.run=^TestProbe$")
	other.Env = append(os.Environ(), probeEnv+"="+socket)
	other.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if out, err := other.CombinedOutput(); err == nil || !strings.Contains(string(out), "is another container's") {
		t.Errorf("in another PID namespace: %v\n%s", err, out)
	}
}
