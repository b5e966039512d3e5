package config

import (
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
)

// TestKeepsAwake: auto is on for few processors. If the kernel cannot do it, that is logged.
func TestKeepsAwake(t *testing.T) {
	if n := processors(); runtime.GOOS == "linux" && n < runtime.NumCPU() {
		t.Errorf("the machine has %d processors, of which this process may run on %d", n, runtime.NumCPU())
	}
	f, err := os.OpenFile("/dev/cpu_dma_latency", os.O_WRONLY, 0)
	if err == nil {
		f.Close()
	}
	for mode, want := range map[string]bool{KeepAwakeOff: false, KeepAwakeOn: err == nil, KeepAwakeAuto: err == nil && processors() <= fewProcessors} {
		var log strings.Builder
		if got := (&Config{KeepAwake: mode}).KeepsAwake(slog.New(slog.NewTextHandler(&log, nil))); got != want {
			t.Errorf("%s: %v, want %v: %s", mode, got, want, &log)
		}
		told := map[bool]string{true: "are kept awake", false: "reason="}
		if !strings.Contains(log.String(), told[want]) {
			t.Errorf("%s: the log says %q", mode, &log)
		}
	}
}
