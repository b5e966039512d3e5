package agent

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/antrail/antrail/ports"
)

// What Config.KeepAwake may be: whether idle processors stay awake while pods talk
// by way of the switch (dataplane/workerawake.go).
const (
	KeepAwakeAuto = "auto" // on a Node of a few processors
	KeepAwakeOn   = "on"
	KeepAwakeOff  = "off"
)

// fewProcessors is how many processors a Node has at most of which all may stay awake:
// the request is to all, and each that polls takes the power of one that works.
const fewProcessors = 4

// KnownKeepAwake says whether keepAwake can be this.
func KnownKeepAwake(s string) bool {
	return s == KeepAwakeAuto || s == KeepAwakeOn || s == KeepAwakeOff
}

// keepsAwake is what the configuration comes to on this machine. That the kernel
// cannot is no error: pods that talk wait for processors to wake up then.
func (c *Config) keepsAwake(log *slog.Logger) bool {
	if c.KeepAwake == KeepAwakeOff {
		return false
	}
	if n := processors(); c.KeepAwake == KeepAwakeAuto && (n == 0 || n > fewProcessors) {
		log.Info("idle processors sleep while pods talk", "processors", n, "keepAwake", c.KeepAwake)
		return false
	}
	request, err := ports.OpenAwake()
	if err == nil {
		err = request.Close()
	}
	if err != nil {
		level := slog.LevelInfo // for nobody asked
		if c.KeepAwake == KeepAwakeOn {
			level = slog.LevelWarn
		}
		log.Log(context.Background(), level, "idle processors sleep while pods talk; to keep them awake takes root, and in a container privileged: true", "error", err)
		return false
	}
	log.Info("idle processors are kept awake while pods talk", "keepAwake", c.KeepAwake)
	return true
}

// processors is how many the machine has, whichever the agent may run on; 0 when that
// is not known.
func processors() int {
	list, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*") // the pattern is well formed
	return len(list)
}
