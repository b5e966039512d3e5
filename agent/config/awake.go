package config

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/antrail/antrail/ports"
	"github.com/antrail/antrail/switchd/local"
)

// What Config.KeepAwake may be: whether idle processors stay awake while pods talk
// by way of the switch, or the garbage collector is at work (dataplane/workerawake.go).
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

// KeepsAwake is what Config.KeepAwake comes to on this machine: nil where idle
// processors are kept awake, else why they are not.
func KeepsAwake(word string) error {
	if word == KeepAwakeOff {
		return errors.New("keepAwake is off")
	}
	if n := processors(); word == KeepAwakeAuto && (n == 0 || n > fewProcessors) {
		return fmt.Errorf("keepAwake is auto, and the machine has %d processors, more than %d", n, fewProcessors)
	}
	request, err := ports.OpenAwake()
	if err == nil {
		err = request.Close()
	}
	if err != nil {
		return fmt.Errorf("%w; it takes root, and in a container privileged: true", err)
	}
	return nil
}

// KeepsAwake says whether they are, and tells the log. That the kernel cannot is no
// error: pods that talk wait for processors to wake up then.
func (c *Config) KeepsAwake(log *slog.Logger) bool {
	err := KeepsAwake(c.KeepAwake)
	switch {
	case err == nil:
		log.Info("idle processors are kept awake while pods talk", "keepAwake", c.KeepAwake)
	case c.KeepAwake == KeepAwakeOn:
		log.Warn("idle processors sleep while pods talk", "reason", err)
	default: // nobody asked
		log.Info("idle processors sleep while pods talk", "reason", err)
	}
	return err == nil
}

// processors is how many the machine has, whichever the agent may run on; 0 when that
// is not known.
func processors() int {
	list, _ := filepath.Glob("/sys/devices/system/cpu/cpu[0-9]*") // the pattern is well formed
	return len(list)
}

// What Config.Offload may be.
const (
	OffloadAuto = local.OffloadAuto
	OffloadOff  = local.OffloadOff
)
