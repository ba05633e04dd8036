//! Finding the objects that a location holds.

use shardcron_domain::limits;
use shardcron_objects::{Location, ObjectMeta, ObjectName, Objects};

use crate::error::{Fault, InputError};

/// Lists the objects of a location in the order of their keys; none is an empty list.
///
/// A location of many objects (its prefix is empty or ends in `/`) holds all whose keys begin with the prefix. One that
/// names a single object holds that object; if there is none of exactly that name, it is taken as a directory whose `/`
/// was left out. It never stands for all keys that happen to begin like it, as a bare prefix of S3 would: with
/// `data/2013-1` would come `data/2013-10.csv`, which nobody asked for.
///
/// The empty objects whose keys end in `/`, which S3's console makes to show a folder, are left out.
///
/// # Errors
/// [`Fault::TooManyObjects`] beyond [`limits::BOUNDARY_OBJECTS_MAX`], and those of the store.
pub async fn list_objects(objects: &dyn Objects, location: &Location) -> Result<Vec<ObjectMeta>, InputError> {
    list_at_most(objects, location, limits::BOUNDARY_OBJECTS_MAX).await
}

pub(crate) async fn list_at_most(
    objects: &dyn Objects,
    location: &Location,
    most: usize,
) -> Result<Vec<ObjectMeta>, InputError> {
    let mut prefix = location.prefix.clone();
    if !location.is_directory() {
        let object = ObjectName { root: location.root.clone(), key: prefix.clone() };
        if let Some(meta) = objects.head(&object).await? {
            return Ok(vec![meta]);
        }
        prefix.push('/');
    }
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let page = objects.list(&location.root, &prefix, after.as_deref(), limits::LIST_PAGE_MAX).await?;
        let is_last = page.len() < limits::LIST_PAGE_MAX;
        after = page.last().map(|meta| meta.key.clone());
        found.extend(page.into_iter().filter(|meta| !is_folder(meta)));
        if found.len() > most {
            return Err(InputError::input(location, None, Fault::TooManyObjects));
        }
        if is_last {
            return Ok(found);
        }
    }
}

fn is_folder(meta: &ObjectMeta) -> bool {
    meta.size == 0 && meta.key.ends_with('/')
}
