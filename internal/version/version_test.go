package version

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestLine: a line names what is known, and does not invent the rest.
func TestLine(t *testing.T) {
	where := "go1.26.8, " + runtime.GOOS + "/" + runtime.GOARCH + ")"
	for want, b := range map[string]Build{
		"antrail v0.1.0 (commit 7f9ad1ba6e1c, 2026-11-27T11:54:23Z, " + where: {"v0.1.0", "7f9ad1ba6e1c", "2026-11-27T11:54:23Z", "go1.26.8"},
		"antrail (devel) (" + where:           {Version: "(devel)", Go: "go1.26.8"},
		"antrail (unknown version) (" + where: {Go: "go1.26.8"},
	} {
		if got := b.Line("antrail"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestRecorded: without the linker's values a build is what Go recorded.
func TestRecorded(t *testing.T) {
	var b Build
	b.read(&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "7f9ad1ba6e1c"}, {Key: "vcs.time", Value: "2026-11-27T11:54:23Z"},
	}})
	if want := (Build{Version: "v1.2.3", Commit: "7f9ad1ba6e1c", Date: "2026-11-27T11:54:23Z"}); b != want {
		t.Errorf("%+v, want %+v", b, want)
	}
}

// TestLinked: the linker's values win over what Go recorded.
func TestLinked(t *testing.T) {
	release, commit, date = "v9.8.7", "abc", "2026-01-01T00:00:00Z"
	defer func() { release, commit, date = "", "", "" }()
	if got, want := Of(), (Build{"v9.8.7", "abc", "2026-01-01T00:00:00Z", runtime.Version()}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
