use super::*;

fn root(path: impl Into<PathBuf>) -> Root {
    Root::new(path.into()).expect("a root")
}

#[test]
fn working_directories_are_absolute_and_plain() {
    for path in ["", ".", "project", "../project", "/project/../etc", "/.."] {
        let error = Root::new(path.into()).expect_err(path);
        assert_eq!(i32::from(error.code), -32602, "{path}");
    }
    for path in ["/", "/project", "/project/./sub", "/a/..b/c"] {
        Root::new(path.into()).expect(path);
    }
}

#[test]
fn names_cannot_lead_out() {
    let root = root("/no-such-folder");
    for name in ["", "/etc/passwd", "..", "../x", "a/../../x", "./x", "a/.."] {
        let error = root.file(name).expect_err(name);
        assert_eq!(i32::from(error.code), -32602, "{name}");
    }
    assert_eq!(root.file("testy-write.txt").expect("a path"), Path::new("/no-such-folder/testy-write.txt"));
    assert_eq!(root.file("a/b").expect("a path"), Path::new("/no-such-folder/a/b"));
}

#[test]
fn uris_keep_every_byte_apart() {
    assert_eq!(root("/").uri("a.txt").expect("a URI"), "file:///a.txt");
    assert_eq!(root("/no such/50%#?").uri("ä.txt").expect("a URI"), "file:///no%20such/50%25%23%3F/%C3%A4.txt");
}

#[cfg(unix)]
mod links {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("testy-root-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("in/sub")).expect("a folder");
            fs::create_dir_all(path.join("out")).expect("a folder");
            Self(path)
        }

        fn link(&self, target: impl AsRef<Path>, name: &str) {
            std::os::unix::fs::symlink(target, self.0.join("in").join(name)).expect("a link");
        }

        fn root(&self) -> Root {
            root(self.0.join("in"))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn links_that_lead_out_are_refused() {
        let folder = Folder::new("out");
        folder.link("../out/file", "dangling");
        folder.link("/etc/hostname", "absolute");
        folder.link("../out", "folder");
        folder.link("loop", "loop");
        for name in ["dangling", "absolute", "folder", "folder/new.txt", "loop"] {
            let error = folder.root().file(name).expect_err(name);
            assert_eq!(i32::from(error.code), -32602, "{name}");
        }
    }

    #[test]
    fn links_that_stay_inside_are_fine() {
        let folder = Folder::new("in");
        fs::write(folder.0.join("in/sub/file"), "x").expect("a file");
        folder.link("sub/file", "inside");
        folder.link("sub", "folder");
        for name in ["inside", "folder/file", "folder/new.txt", "new.txt", "sub/new.txt", "new/new.txt"] {
            folder.root().file(name).expect(name);
        }
    }

    /// The working directory itself may be reached through a link: the session was given that path.
    #[test]
    fn the_root_may_be_a_link() {
        let folder = Folder::new("root");
        folder.link("sub", "here");
        let root = root(folder.0.join("in/here"));
        assert_eq!(root.file("new.txt").expect("a path"), folder.0.join("in/here/new.txt"));
    }
}
