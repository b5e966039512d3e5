package rig

import (
	"cmp"
	"runtime/debug"
)

// Build is the program that was measured, as the Go toolchain knows it.
type Build struct {
	// Version is the module's: v1.2.3, or (devel). It is empty in results of older programs; so is Commit.
	Version string `json:"version,omitempty"`
	// Commit is the revision that was built. It is empty if the program was built outside a checkout.
	Commit string `json:"commit,omitempty"`
	// Modified says that files differed from the commit.
	Modified bool `json:"modified,omitempty"`
}

// thisBuild is that of the running program.
func thisBuild() (b Build) {
	facts, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = facts.Main.Version
	for _, s := range facts.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is the version and the commit; "unknown build" for a result that has neither.
func (b Build) String() string {
	text := cmp.Or(b.Version, "unknown build")
	if b.Commit != "" {
		text += " " + b.Commit[:min(len(b.Commit), 12)]
	}
	if b.Modified {
		text += " with changes"
	}
	return text
}
